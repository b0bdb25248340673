// SPDX-License-Identifier: LGPL-2.1-or-later
// bus-storm CLIENTS SECONDS: CLIENTS clients at once make valid and invalid calls to the daemon. Each makes
// its next call as soon as it has a reply; at times it disconnects with open calls. Prints the counts as
// JSON. Does not judge times; calls without a reply are counted in `timeouts`.
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace {

constexpr const char* kName = "org.wqtuned1";
constexpr const char* kPath = "/org/wqtuned1";
constexpr const char* kInterface = "org.wqtuned1.Manager";
constexpr std::uint64_t kPatience = 120'000'000;  // us, for the open calls at the end

struct Counts {
    unsigned calls = 0, statuses = 0, errors = 0, timeouts = 0, unanswered = 0, connections = 0, dropped = 0;
} counts;

bool over = false;       // no more calls
std::size_t asking = 0;  // clients that are not done

struct Client {
    sd_event* event = nullptr;
    sd_bus* bus = nullptr;
    unsigned turn = 0;
    void next();
    bool ask(const char* method, std::string_view types, const char* first, const char* second);
    void ask_and_leave();
    void hang_up();
    void begin();
    void begin_later();
    void begin_in(std::uint64_t us);
};

int on_answer(sd_bus_message* answer, void* userdata, sd_bus_error* /*error*/) {
    const sd_bus_error* error = ::sd_bus_message_get_error(answer);
    if (error == nullptr)
        counts.statuses += ::sd_bus_message_has_signature(answer, "s") > 0 ? 1 : 0;
    else if (::sd_bus_error_has_name(error, SD_BUS_ERROR_NO_REPLY) == 0)
        counts.errors++;
    else if (::sd_bus_is_open(::sd_bus_message_get_bus(answer)) > 0)
        counts.timeouts++;  // sd-bus stopped waiting
    static_cast<Client*>(userdata)->next();
    return 1;
}

bool Client::ask(const char* method, std::string_view types, const char* first, const char* second) {
    counts.calls++;
    sd_bus_message* message = nullptr;
    int r = ::sd_bus_message_new_method_call(bus, &message, kName, kPath, kInterface, method);
    if (r >= 0 && types == "i") r = ::sd_bus_message_append(message, "i", 7);
    if (r >= 0 && types.starts_with('s')) r = ::sd_bus_message_append(message, "s", first);
    if (r >= 0 && types == "ss") r = ::sd_bus_message_append(message, "s", second);
    if (r >= 0) r = ::sd_bus_call_async(bus, nullptr, message, on_answer, this, UINT64_MAX);
    ::sd_bus_message_unref(message);
    return r >= 0;
}

// Makes ten calls and disconnects without reading a reply.
void Client::ask_and_leave() {
    for (int i = 0; i < 10; i++) {
        sd_bus_message* message = nullptr;
        if (::sd_bus_message_new_method_call(bus, &message, kName, kPath, kInterface, "GetStatus") < 0) break;
        ::sd_bus_message_set_expect_reply(message, i % 2);
        counts.calls++;
        counts.unanswered++;
        (void)::sd_bus_send(bus, message, nullptr);
        ::sd_bus_message_unref(message);
    }
    (void)::sd_bus_flush(bus);
    hang_up();
    begin();
}

void Client::hang_up() {
    ::sd_bus_detach_event(bus);
    ::sd_bus_close_unref(bus);
    bus = nullptr;
}

// May fail: the bus limits the connections of one user, and old ones may not be closed yet.
void Client::begin() {
    if (over) return next();
    if (turn % 8 == 7) turn++;  // not ask_and_leave(): it would block until the bus has accepted us
    if (::sd_bus_open_system(&bus) < 0 || ::sd_bus_attach_event(bus, event, 0) < 0) return begin_later();
    counts.connections++;
    (void)::sd_bus_add_match_async(bus, nullptr, "type='signal',sender='org.wqtuned1'", nullptr, nullptr,
                                   nullptr);
    next();
}

void Client::begin_later() {
    counts.dropped++;
    if (bus != nullptr) hang_up();
    begin_in(200'000 + turn % 16 * 20'000);
}

// The bus sets up 64 connections at once. More than that have to wait, and delay everybody else.
void Client::begin_in(std::uint64_t us) {
    ::sd_event_add_time_relative(
        event, nullptr, CLOCK_MONOTONIC, us, 1000,
        [](sd_event_source* /*source*/, std::uint64_t /*now*/, void* self) {
            static_cast<Client*>(self)->begin();
            return 0;
        },
        this);
}

void Client::next() {
    static const std::string long_word(300, 'x');
    if (over) {
        if (--asking == 0) ::sd_event_exit(event, 0);
        return;
    }
    bool asked = false;
    switch (turn++ % 8) {
        case 3:
            asked = ask("Pin", "i", nullptr, nullptr);
            break;
        case 4:
            asked = ask("Subscribe", "", nullptr, nullptr);
            break;
        case 5:
            asked = ask("Pin", "ss", "writeback", "smt");
            break;
        case 6:
            asked = ask("Unpin", "s", long_word.c_str(), nullptr);
            break;
        case 7:
            return ask_and_leave();
        default:
            asked = ask("GetStatus", "", nullptr, nullptr);
    }
    if (!asked) begin_later();
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    const auto seconds = std::strtoull(argv[2], nullptr, 10);
    sd_event* event = nullptr;
    if (::sd_event_default(&event) < 0) return 1;
    std::vector<Client> clients(std::strtoul(argv[1], nullptr, 10));
    asking = clients.size();
    unsigned turn = 0;
    for (Client& client : clients) {
        client.event = event;
        client.turn = turn;
        client.begin_in(std::uint64_t{turn++} * 20'000);
    }
    ::sd_event_add_time_relative(
        event, nullptr, CLOCK_MONOTONIC, seconds * 1'000'000, 0,
        [](sd_event_source* source, std::uint64_t /*now*/, void* /*userdata*/) {
            over = true;
            return ::sd_event_add_time_relative(::sd_event_source_get_event(source), nullptr, CLOCK_MONOTONIC,
                                                kPatience, 0, nullptr, nullptr);  // ends the loop
        },
        nullptr);
    const int r = ::sd_event_loop(event);
    counts.timeouts += static_cast<unsigned>(asking);
    std::cout << nlohmann::ordered_json{{"calls", counts.calls},
                                        {"statuses", counts.statuses},
                                        {"errors", counts.errors},
                                        {"timeouts", counts.timeouts},
                                        {"unanswered", counts.unanswered},
                                        {"connections", counts.connections},
                                        {"dropped", counts.dropped}}
              << std::endl;
    std::_Exit(r < 0 ? 1 : 0);  // 200 connections end with the process
}
