// SPDX-License-Identifier: LGPL-2.1-or-later
#include "state/state_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/text.h"

namespace wq {
namespace {

using nlohmann::json;

constexpr std::size_t kBrokenLog = 4;  // times the limit

// Reads TEXT as a document of VERSION. Returns why it is none; "" if DESCRIPTION accepts it.
std::string why_broken(std::string_view text, int version, const StateDescription& description) {
    auto document = parse_json(text);
    if (!document) return document.error().text;
    std::string error;
    JsonPlace root(*document, error);
    int found = 0;
    root("version", found);
    if (error.empty() && found != version) return fmt::format("unknown version {}", found);
    if (error.empty()) description(root);
    root.end_object();
    return error;
}

Result<std::string> text_of(const StateRules& rules, bool lines, const StateDescription& description) {
    JsonText out{lines, rules.may_replace_bytes};
    std::string error;
    JsonPlace root(out, error);
    int version = rules.version;
    out.open('{');
    try {
        root("version", version);
        description(root);
    } catch (const json::exception& e) {
        return fail(json_error_text(e.what()), EILSEQ);
    }
    if (!error.empty()) return fail(error, ERANGE);
    out.close('}');
    return std::move(out.text) + "\n";
}

bool is_broken(const Error& error) {
    return error.code == EBADMSG || error.code == EFBIG;
}

// Renames a broken file, so that its owner can begin anew. Returns what became of it.
Error set_aside(const std::string& path, const Error& why) {
    const std::string aside = path + ".broken";
    if (::rename(path.c_str(), aside.c_str()) == 0)
        return {why.code, fmt::format("{}; renamed to {}", why.text, aside)};
    return fail_errno(why.text + "; cannot be renamed", errno).value();
}

std::string_view last_line(std::string_view lines) {
    const auto before = lines.size() < 2 ? std::string_view::npos : lines.rfind('\n', lines.size() - 2);
    return lines.substr(before + 1);
}

// TEXT without a torn line: one without a newline, or a last one of which the disk did not get all blocks.
std::string_view whole_lines(std::string_view text) {
    text = text.substr(0, text.rfind('\n') + 1);
    const std::string_view last = last_line(text);
    if (!last.empty() && !parse_json(last)) text.remove_suffix(last.size());
    return text;
}

// The last of LINES, as many as fit into LIMIT bytes.
std::string newest_lines(std::string lines, std::size_t limit) {
    if (lines.size() > limit) lines.erase(0, lines.find('\n', lines.size() - limit - 1) + 1);
    return lines;
}

// The number of the last of LINES; 0 if there are none.
Result<std::uint64_t> last_number(std::string_view lines) {
    if (lines.empty()) return 0;
    const auto line = parse_json(last_line(lines));
    if (!line) return tl::unexpected(line.error().in("last line"));
    const auto number = line->is_object() ? line->find("number") : line->end();
    if (number == line->end() || !number->is_number_unsigned()) return fail("last line: no number", EBADMSG);
    return number->get<std::uint64_t>();
}

// Adds TEXT to PATH, whose torn line begins at byte END. A failure leaves no part of TEXT behind.
Status append_at(const std::string& path, std::size_t end, bool torn, const std::string& text) {
    const Fd fd(::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW));
    if (!fd) return fail_errno(path, errno);
    if (torn && ::ftruncate(fd.get(), static_cast<off_t>(end)) != 0)
        return fail_errno(path + ": cutting off a torn line", errno);
    Status done = write_all(fd.get(), text);
    if (done && ::fsync(fd.get()) != 0) done = fail_errno("fsync", errno);
    if (done) return done;
    (void)!::ftruncate(fd.get(), static_cast<off_t>(end));
    return tl::unexpected(done.error().in(path));
}

}  // namespace

Status StateFileBase::remove() {
    saved_.reset();
    return remove_file(path_);
}

Result<bool> StateFileBase::read_by(const StateDescription& description,
                                    std::optional<std::uint64_t>* hash) const {
    const auto text = read_if_there(path_, rules_.limit);
    if (!text) return tl::unexpected(text.error());
    if (!*text) return false;
    const std::string why = why_broken(**text, rules_.version, description);
    if (!why.empty()) return fail(path_ + ": " + why, EBADMSG);
    if (hash != nullptr) *hash = hash_of(**text);
    return true;
}

Result<bool> StateFileBase::load_by(const StateDescription& description) {
    saved_.reset();
    auto found = read_by(description, &saved_);
    refused_ = !found;
    if (found || !is_broken(found.error()) || rules_.if_broken == IfBroken::refuse) return found;
    const Error error = set_aside(path_, found.error());
    refused_ = !is_broken(error);
    return tl::unexpected(error);
}

Result<std::string> StateFileBase::text_by(const StateDescription& description) const {
    return text_of(rules_, true, description).map_error([this](const Error& e) { return e.in(path_); });
}

Status StateFileBase::save_text(const std::string& text) {
    if (refused_) return fail(path_ + ": could not be read, and is not replaced", EBADMSG);
    const std::uint64_t hash = hash_of(text);
    if (hash == saved_) return {};
    saved_.reset();  // after an error the file may have been replaced or not
    if (auto done = replace_state_file(path_, text, rules_.mode); !done) return done;
    saved_ = hash;
    return {};
}

Status AppendLogBase::read_by(const Take& take) const {
    const auto text = read_if_there(path_, kBrokenLog * rules_.limit);
    if (!text) return tl::unexpected(text.error());
    std::string_view rest = *text ? whole_lines(**text) : "";
    std::uint64_t last = 0;
    for (std::size_t line = 1; !rest.empty(); line++) {
        const auto end = rest.find('\n');
        std::string why = why_broken(rest.substr(0, end), rules_.version, [&](JsonPlace& at) {
            std::uint64_t number = 0;
            at("number", number, last + 1, UINT64_MAX);
            if (!at.refused()) take(last = number, at);
        });
        if (!why.empty()) return fail(fmt::format("{}: line {}: {}", path_, line, why), EBADMSG);
        rest.remove_prefix(end + 1);
    }
    return {};
}

Status AppendLogBase::load_by(const Take& take) const {
    auto read = read_by(take);
    if (read || !is_broken(read.error()) || rules_.if_broken == IfBroken::refuse) return read;
    return tl::unexpected(set_aside(path_, read.error()));
}

Result<AppendLogBase::Text> AppendLogBase::text_by(std::uint64_t number,
                                                   const StateDescription& description) const {
    const auto line = text_of(rules_, false, [&](JsonPlace& at) {
        at("number", number);
        description(at);
    });
    if (!line) return tl::unexpected(line.error().in(path_));
    return Text{number, *line};
}

Status AppendLogBase::append_texts(const std::vector<Text>& lines) const {
    const auto text = read_if_there(path_, kBrokenLog * rules_.limit);
    if (!text) return tl::unexpected(text.error());
    const std::string_view there = *text ? std::string_view(**text) : "";
    const std::size_t whole = whole_lines(there).size();
    const auto last = last_number(there.substr(0, whole));
    if (!last) return tl::unexpected(last.error().in(path_));
    std::string added;
    for (const Text& line : lines)
        if (line.number > *last) added += line.line;
    if (whole + added.size() > rules_.limit)
        return replace_state_file(
            path_, newest_lines(std::string(there.substr(0, whole)) + added, rules_.limit / 2), rules_.mode);
    if (added.empty()) return {};
    return *text ? append_at(path_, whole, whole < there.size(), added)
                 : replace_state_file(path_, added, rules_.mode);
}

}  // namespace wq
