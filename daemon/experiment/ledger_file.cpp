// SPDX-License-Identifier: LGPL-2.1-or-later
#include "experiment/ledger_file.h"

#include <fmt/format.h>
#include <syslog.h>

#include <cerrno>
#include <cstdio>

#include "base/clock.h"
#include "base/file.h"

namespace wq {
namespace {

constexpr std::uint64_t kSlow = 2 * kSecond;
constexpr std::uint64_t kMinute = 60 * kSecond;
constexpr std::size_t kMaxLedger = 64U << 20;  // bytes; a thousand entries of eight counters take 20 MB

}  // namespace

Result<Ledger> LedgerFile::read(const std::string& path) {
    const auto text = read_if_there(path, kMaxLedger);
    if (!text) return tl::unexpected(text.error());
    if (!*text) return Ledger();
    return Ledger::from_text(**text).map_error([&](const Error& e) {
        return Error{0, path + ": " + e.text};
    });
}

void LedgerFile::load() {
    auto found = read(path_);
    if (found) {
        ledger_ = std::move(*found);
        return;
    }
    if (found.error().code != 0 && found.error().code != EFBIG) {
        unread_ = true;
        error_ = found.error().text;
        log_.write({LOG_WARNING, Event::verdicts_broken,
                    error_ + "; it stays as it is, and no slot begins until a restart can read it"});
        return;
    }
    const std::string aside = path_ + ".broken";
    const bool moved = ::rename(path_.c_str(), aside.c_str()) == 0;
    log_.write(
        {LOG_WARNING, Event::verdicts_broken,
         moved ? fmt::format("{}; renamed to {}, learning starts from scratch", found.error().text, aside)
               : fmt::format("{}; cannot be renamed", found.error().text)});
}

void LedgerFile::save(std::uint64_t now) {
    if (unread_ || (!changed_ && error_.empty())) return;
    changed_ = false;
    saved_at_ = now;
    const std::uint64_t number = ++saves_;
    if (!saving_since_) saving_since_ = now;
    record_.put(
        path_, [path = path_, text = ledger_.text()] { return replace_state_file(path, text); },
        [this, number](const Status& done) { saved(number, done); });
}

void LedgerFile::save_in_time(std::uint64_t now) {
    if (now - saved_at_ >= kMinute) save(now);
}

void LedgerFile::saved(std::uint64_t number, const Status& done) {
    if (number == saves_) saving_since_.reset();
    const std::string error = done ? "" : done.error().text;
    if (error != error_ && !error.empty())
        log_.write({LOG_WARNING, Event::none,
                    error + "; results may be lost, and no slot begins until the ledger can be saved"});
    error_ = error;
}

std::string LedgerFile::why_not(std::uint64_t now) const {
    if (!error_.empty()) return error_;
    if (saving_since_ && now - *saving_since_ > kSlow)
        return fmt::format("the disk has not answered for {} s", (now - *saving_since_) / kSecond);
    return "";
}

}  // namespace wq
