// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/lab/metric.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdint>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace wq::ab {
namespace {

std::string message_of(int code) {
    std::array<PCRE2_UCHAR, 256> text{};
    ::pcre2_get_error_message(code, text.data(), text.size());
    return reinterpret_cast<const char*>(text.data());
}

// A command's text for an error message: one short line of printable ASCII.
std::string shown(std::string_view text) {
    constexpr std::size_t kMost = 40;
    std::string out(text.substr(0, kMost));
    for (char& c : out)
        if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f) c = '?';
    return out + (text.size() > kMost ? "..." : "");
}

}  // namespace

Result<Metric> Metric::parse(const std::string& pattern) {
    int error = 0;
    PCRE2_SIZE offset = 0;
    auto* code = ::pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                 PCRE2_MULTILINE | PCRE2_NEVER_UTF, &error, &offset, nullptr);
    if (code == nullptr) return fail(fmt::format("character {}: {}", offset + 1, message_of(error)), EINVAL);
    Metric metric(std::shared_ptr<const void>(
        code, [](const void* c) { ::pcre2_code_free(static_cast<pcre2_code*>(const_cast<void*>(c))); }));
    std::uint32_t groups = 0;
    ::pcre2_pattern_info(code, PCRE2_INFO_CAPTURECOUNT, &groups);
    if (groups != 1)
        return fail(fmt::format("it has {} groups; exactly one, (...), must hold the number", groups),
                    EINVAL);
    return metric;
}

Result<double> Metric::read(std::string_view output) const {
    const auto* code = static_cast<const pcre2_code*>(code_.get());
    const std::unique_ptr<pcre2_match_data, void (*)(pcre2_match_data*)> match(
        ::pcre2_match_data_create_from_pattern(code, nullptr), ::pcre2_match_data_free);
    const int found = ::pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(output.data()), output.size(), 0, 0,
                                    match.get(), nullptr);
    if (found == PCRE2_ERROR_NOMATCH) return fail("nothing in its output matches --metric");
    if (found < 0) return fail("--metric: " + message_of(found));
    const PCRE2_SIZE* ends = ::pcre2_get_ovector_pointer(match.get());
    if (found < 2 || ends[2] == PCRE2_UNSET) return fail("the group of --metric has no part in the match");
    const std::string_view group = output.substr(ends[2], ends[3] - ends[2]);
    double value = 0;
    const auto [end, error] = std::from_chars(group.data(), group.data() + group.size(), value);
    if (error != std::errc{} || end != group.data() + group.size() || !std::isfinite(value))
        return fail(fmt::format("--metric found '{}', which is not a number", shown(group)));
    if (value <= 0)
        return fail(fmt::format("--metric found {}; only numbers above 0 are compared", shown(group)));
    return value;
}

}  // namespace wq::ab
