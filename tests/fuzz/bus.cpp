// SPDX-License-Identifier: LGPL-2.1-or-later
//
// D-Bus: one call with arguments of any types to the daemon's real methods, over a private bus; and, if
// polkit is asked, its answer, also of any types. The input is a stream of choices.
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <optional>
#include <string>

#include "fuzz.h"
#include "service/bus.h"
#include "service/server.h"

using wq::BusPtr;
using wq::MessagePtr;
using wq::fuzz::require;

static constexpr unsigned kMostDeep = 4;

class Choices {
  public:
    explicit Choices(std::string_view text) : text_(text) {}

    // Returns 0 to N - 1; 0 at the end of the input.
    unsigned below(unsigned n) {
        const unsigned char byte = text_.empty() ? 0 : static_cast<unsigned char>(text_.front());
        text_.remove_prefix(text_.empty() ? 0 : 1);
        return byte % n;
    }
    bool yes() { return below(2) != 0; }

    template <class T>
    T number() {
        T out = 0;
        const auto bytes = take(sizeof out);
        std::memcpy(&out, bytes.data(), bytes.size());
        return out;
    }

    // Returns up to 63 bytes of input, or 247 to 262 letters: an argument may have at most 255.
    std::string text() {
        const unsigned length = below(80);
        if (length < 64) return std::string(take(length));
        return std::string(255 + length - 72, 'x');
    }

  private:
    std::string_view take(std::size_t length) {
        const auto out = text_.substr(0, length);
        text_.remove_prefix(out.size());
        return out;
    }

    std::string_view text_;
};

// Returns the length of the first complete type of SIGNATURE; 0 if there is none.
static std::size_t type_length(std::string_view signature) {
    unsigned depth = 0;
    for (std::size_t i = 0; i < signature.size(); i++) {
        const char c = signature[i];
        if (c == '(' || c == '{') depth++;
        if ((c == ')' || c == '}') && depth-- == 0) return 0;
        if (depth == 0 && c != 'a') return i + 1;
    }
    return 0;
}

static bool append_types(sd_bus_message* message, std::string_view signature, Choices& choices,
                         unsigned depth);

static bool append_container(sd_bus_message* message, char kind, const std::string& contents, unsigned times,
                             Choices& choices, unsigned depth) {
    if (depth == kMostDeep || ::sd_bus_message_open_container(message, kind, contents.c_str()) < 0)
        return false;
    for (unsigned i = 0; i < times; i++)
        if (!append_types(message, contents, choices, depth + 1)) return false;
    return ::sd_bus_message_close_container(message) >= 0;
}

static bool append_basic(sd_bus_message* message, char type, Choices& choices) {
    if (std::strchr("sog", type) != nullptr)
        return ::sd_bus_message_append_basic(message, type, choices.text().c_str()) >= 0;
    if (type == 'b') {
        const int yes = choices.yes() ? 1 : 0;
        return ::sd_bus_message_append_basic(message, type, &yes) >= 0;
    }
    // Each other type uses as many of these bytes as it needs.
    const auto number = choices.number<std::uint64_t>();
    return std::strchr("ynqiuxtd", type) != nullptr &&
           ::sd_bus_message_append_basic(message, type, &number) >= 0;
}

// Appends values of these types. Returns false if sd-bus refuses them.
static bool append_types(sd_bus_message* message, std::string_view signature, Choices& choices,
                         unsigned depth) {
    while (!signature.empty()) {
        const std::size_t length = type_length(signature);
        if (length == 0) return false;
        const std::string one(signature.substr(0, length));
        signature.remove_prefix(length);
        bool done = false;
        if (one[0] == 'a')
            done = append_container(message, 'a', one.substr(1), choices.below(4), choices, depth);
        else if (one[0] == 'v')
            done = append_container(message, 'v', std::string(1, "sbyxdogu"[choices.below(8)]), 1, choices,
                                    depth);
        else if (length > 2)
            done = append_container(message, one[0] == '(' ? 'r' : 'e', one.substr(1, length - 2), 1, choices,
                                    depth);
        else
            done = append_basic(message, one[0], choices);
        if (!done) return false;
    }
    return true;
}

// Appends values of one of the LIKELY types, or of any types with a signature of at most 64 bytes (libsystemd
// 252 does not take a signature of 255 bytes).
static bool append_anything(sd_bus_message* message, std::initializer_list<const char*> likely,
                            Choices& choices) {
    const unsigned which = choices.below(static_cast<unsigned>(likely.size()) + 1);
    return append_types(
        message, which < likely.size() ? std::string(likely.begin()[which]) : choices.text().substr(0, 64),
        choices, 0);
}

// The result of one call.
struct Outcome {
    unsigned orders = 0;   // carried out
    unsigned replies = 0;  // errors included
    bool allowed = false;  // by the caller's UID, or by polkit
};

static wq::BusHandlers handlers(Outcome& outcome, Choices& choices) {
    const auto order = [&](const std::string& one, const std::string& two = "") -> wq::Status {
        require(outcome.allowed, "nothing is carried out that nobody allowed");
        require(one.size() <= 255 && two.size() <= 255, "arguments are short");
        outcome.orders++;
        if (choices.yes()) return wq::fail("refused: " + one + two);
        return {};
    };
    return {
        .status = [](bool) { return std::string("{}"); },
        .pin = order,
        .unpin = [order](const std::string& target) { return order(target); },
        .revert = [order](const std::optional<std::string>& target) { return order(target.value_or("")); },
        .trial = order,
        .reload = [order] { return order(""); },
        .pause = [order](bool paused) { return order(paused ? "pause" : "resume"); }};
}

// One end of a private bus.
static BusPtr open_end(int fd, bool server) {
    sd_bus* raw = nullptr;
    require(::sd_bus_new(&raw) >= 0, "a bus can be made");
    BusPtr bus(raw);
    require(::sd_bus_set_fd(raw, fd, fd) >= 0, "a bus can be connected");
    if (server) require(::sd_bus_set_server(raw, 1, sd_id128_t{}) >= 0, "a bus can serve");
    ::sd_bus_set_anonymous(raw, 1);
    require(::sd_bus_start(raw) >= 0, "a bus can be started");
    return bus;
}

// Plays the caller, the bus and polkit.
struct Caller {
    Outcome& outcome;
    Choices& choices;

    static int on_message(sd_bus_message* message, void* self, sd_bus_error* /*error*/) {
        return static_cast<Caller*>(self)->answer(message);
    }
    static int on_reply(sd_bus_message* /*reply*/, void* self, sd_bus_error* /*error*/) {
        static_cast<Caller*>(self)->outcome.replies++;
        return 0;
    }

    // The bus's answer about the sender of a call: root, nobody, an error, or a reply of the wrong type.
    int tell_user(sd_bus_message* question) {
        const unsigned which = choices.below(4);
        outcome.allowed = which == 1;
        if (which == 2) return ::sd_bus_reply_method_errorf(question, SD_BUS_ERROR_NAME_HAS_NO_OWNER, "gone");
        if (which == 3) return ::sd_bus_reply_method_return(question, "s", "root");
        return ::sd_bus_reply_method_return(question, "u", which == 1 ? 0U : 65534U);
    }

    // polkit's answer: an error, or values of any types. A first member that reads as true allows the call.
    int answer(sd_bus_message* question) {
        if (::sd_bus_message_is_method_call(question, nullptr, "GetConnectionUnixUser") > 0)
            return tell_user(question);
        if (::sd_bus_message_is_method_call(question, nullptr, "CheckAuthorization") <= 0) return 0;
        sd_bus_message* raw = nullptr;
        require(::sd_bus_message_new_method_return(question, &raw) >= 0, "a reply can be made");
        const MessagePtr reply(raw);
        if (choices.below(8) == 1 ||
            !append_anything(raw, {"(bba{ss})", "(bb)", "bba{ss}", "b", "s", ""}, choices))
            return ::sd_bus_reply_method_errorf(question, SD_BUS_ERROR_SERVICE_UNKNOWN, "no polkit");
        require(::sd_bus_message_seal(raw, 1, 0) >= 0, "a reply can be sealed");
        int yes = 0;
        if (::sd_bus_message_enter_container(raw, 'r', "bba{ss}") > 0 &&
            ::sd_bus_message_read_basic(raw, 'b', &yes) > 0)
            outcome.allowed = yes != 0;
        ::sd_bus_message_rewind(raw, 1);
        return ::sd_bus_send(nullptr, raw, nullptr);
    }
};

static MessagePtr make_call(sd_bus* bus, Outcome& outcome, Choices& choices) {
    static constexpr std::array kMembers = {"Pin",       "Unpin",      "Revert", "Trial", "Reload",
                                            "GetStatus", "Introspect", "Get",    "Set",   "GetAll"};
    static constexpr std::array kInterfaces = {wq::kBusInterface, "org.freedesktop.DBus.Properties",
                                               "org.freedesktop.DBus.Introspectable"};
    const char* member = kMembers[choices.below(kMembers.size())];
    const char* interface = kInterfaces[choices.below(kInterfaces.size())];
    const char* path = choices.below(4) == 1 ? "/org/freedesktop/LogControl1" : wq::kBusPath;
    sd_bus_message* raw = nullptr;
    require(::sd_bus_message_new_method_call(bus, &raw, nullptr, path, interface, member) >= 0,
            "a call can be made");
    MessagePtr message(raw);
    const bool has_sender = choices.yes();
    if (has_sender) require(::sd_bus_message_set_sender(raw, ":1.7") >= 0, "a call has a sender");
    // Without a sender the caller is this process; with a sender the daemon asks the bus.
    outcome.allowed = ::geteuid() == 0 && !has_sender;
    ::sd_bus_message_set_allow_interactive_authorization(raw, choices.yes() ? 1 : 0);
    if (!append_anything(raw, {"", "s", "ss", "sss", "ssv", "(ss)", "as"}, choices)) return nullptr;
    return message;
}

// Processes both ends until neither has anything to do.
static void process(sd_bus* one, sd_bus* other) {
    for (bool busy = true; busy;) {
        busy = false;
        for (sd_bus* bus : {one, other}) busy |= ::sd_bus_process(bus, nullptr) > 0;
    }
}

FUZZ_TARGET(bus) {
    Choices choices(text);
    Outcome outcome;
    Caller caller{outcome, choices};
    wq::Journal journal;
    std::array<int, 2> ends{};
    require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) == 0,
            "a socketpair");
    const BusPtr client = open_end(ends[1], false);
    const auto server = wq::BusServer::serve(open_end(ends[0], true), journal, handlers(outcome, choices));
    require(server.has_value(), "the daemon answers on a bus");
    require(::sd_bus_add_filter(client.get(), nullptr, Caller::on_message, &caller) >= 0,
            "polkit can be played");
    process(client.get(), (*server)->bus());

    const MessagePtr message = make_call(client.get(), outcome, choices);
    if (!message) return;
    // sd-bus refuses some messages only when it sends them.
    if (::sd_bus_call_async(client.get(), nullptr, message.get(), Caller::on_reply, &caller, 0) < 0) return;
    process(client.get(), (*server)->bus());
    require(outcome.replies == 1, "a call has one reply");
    require(outcome.orders <= 1, "an order is carried out once");
    require(::sd_bus_is_open((*server)->bus()) > 0, "the daemon stays on the bus");
    require(journal.max_level() >= 0 && journal.max_level() <= 7, "the log level is 0 to 7");
}
