// SPDX-License-Identifier: LGPL-2.1-or-later
#include "evidence/verdicts.h"

#include <fmt/format.h>
#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/hash.h"
#include "base/text.h"

namespace wq {
namespace {

using nlohmann::json;

constexpr std::size_t kMostRecords = 1000;
constexpr std::size_t kMaxStore = 8U << 20;  // bytes; a thousand records have half a megabyte
constexpr int kVersion = 1;
constexpr std::uint64_t kMaxCount = 1'000'000'000;  // most pairs, comparisons and items in a valid store
constexpr std::uint64_t kMaxTime = 1ULL << 40;      // s; tens of thousands of years

json to_json(const VerdictKey& key) {
    return {{"kernel", key.kernel},
            {"topology", key.topology},
            {"class", key.kind},
            {"reference", key.reference},
            {"candidate", key.candidate},
            {"judge", key.judge},
            {"cpus", key.cpus}};
}

VerdictKey verdict_key_from(const json& j) {
    const auto text = [&](const char* name) { return j.at(name).get<std::string>(); };
    return {text("kernel"),    text("topology"), text("class"), text("reference"),
            text("candidate"), text("judge"),    text("cpus")};
}

[[noreturn]] void refuse_entry(const std::string& why) {
    throw json::other_error::create(501, why, nullptr);
}

// We write only finite numbers and valid counts. Any other value (such as -1 comparisons) was not written by
// us.
double finite(const json& value) {
    const auto number = value.get<double>();
    if (!std::isfinite(number)) refuse_entry("a number that is not finite");
    return number;
}

double number(const json& j, const char* name) {
    return finite(j.at(name));
}

std::uint64_t count(const json& j, const char* name, std::uint64_t most = kMaxCount) {
    const auto& value = j.at(name);
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > most)
        refuse_entry(fmt::format("{} is not a count", name));
    return value.get<std::uint64_t>();
}

Judgement outcome_from(const std::string& word) {
    for (const auto outcome : {Judgement::regressed, Judgement::improved, Judgement::undecided})
        if (word == name_of(outcome)) return outcome;
    refuse_entry("unknown verdict '" + word + "'");
}

json interval_to_json(const std::optional<Effect::Interval>& interval) {
    return interval ? json{interval->low, interval->high} : json(nullptr);
}

std::optional<Effect::Interval> interval_from(const json& j) {
    if (j.is_null()) return {};
    return Effect::Interval{finite(j.at(0)), finite(j.at(1))};
}

JudgeSettings settings_from(const json& j) {
    JudgeSettings out;
    out.alpha = number(j, "alpha");
    out.tolerance = number(j, "tolerance");
    out.max_pairs = static_cast<unsigned>(count(j, "max_pairs", kMaxPairs));
    if (out.alpha <= 0 || out.alpha > kMaxAlpha || out.tolerance < 0 || out.tolerance > 1)
        refuse_entry("settings out of their ranges");
    return out;
}

VerdictRecord record_from(const json& j) {
    VerdictRecord r;
    r.key = verdict_key_from(j);
    r.target = j.at("target").get<std::string>();
    r.time = static_cast<std::int64_t>(count(j, "time", kMaxTime));
    r.comparison = static_cast<unsigned>(count(j, "comparison"));
    r.judged = j.at("judged").get<bool>();
    r.outcome = outcome_from(j.at("verdict").get<std::string>());
    r.reason = j.at("reason").get<std::string>();
    r.settings = settings_from(j);
    r.standing.counter = j.at("counter").get<std::string>();
    r.standing.pairs = static_cast<unsigned>(count(j, "pairs"));
    r.standing.log_regressed = std::log(std::max(number(j, "e_regressed"), 1e-300));
    r.standing.log_improved = std::log(std::max(number(j, "e_improved"), 1e-300));
    if (r.standing.pairs > 0)
        r.standing.effect = {number(j, "effect_percent"), interval_from(j.at("interval_percent"))};
    return r;
}

}  // namespace

json to_json(const VerdictRecord& r) {
    json out = to_json(r.key);
    out.update({{"target", r.target},
                {"time", r.time},
                {"comparison", r.comparison},
                {"alpha", r.settings.alpha},
                {"tolerance", r.settings.tolerance},
                {"max_pairs", r.settings.max_pairs},
                {"judged", r.judged},
                {"verdict", name_of(r.outcome)},
                {"reason", r.reason},
                {"counter", r.standing.counter},
                {"pairs", r.standing.pairs},
                {"e_regressed", evidence_of(r.standing.log_regressed)},
                {"e_improved", evidence_of(r.standing.log_improved)},
                {"effect_percent", r.standing.pairs > 0 ? json(r.standing.effect.percent) : json(nullptr)},
                {"interval_percent", interval_to_json(r.standing.effect.interval)}});
    return out;
}

std::string VerdictKey::text() const {
    return fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n{}", kernel, topology, kind, reference, candidate, judge,
                       cpus);
}

std::string class_of(const std::string& name) {
    std::string out;
    for (const char c : name)
        if (std::isdigit(static_cast<unsigned char>(c)) == 0)
            out += c;
        else if (out.empty() || out.back() != '#')
            out += '#';
    return out;
}

std::string effect_text(const Standing& s) {
    if (s.pairs == 0) return "-";
    return s.counter + " " + effect_text(s.effect);
}

std::string text_of(const Standing& s) {
    if (s.pairs == 0) return "no pair was measured";
    return effect_text(s) + ", " + plural(s.pairs, "pair");
}

std::string text_of(const VerdictRecord& r) {
    const std::string why = r.reason.empty() ? "" : fmt::format(" ({})", r.reason);
    return fmt::format("{} against {}: {}{}, {}", r.key.candidate, r.key.reference, name_of(r.outcome), why,
                       text_of(r.standing));
}

bool is_trusted(const VerdictRecord& record, std::chrono::seconds retry_after, std::int64_t now) {
    // A time in the future means that the clock was wrong.
    return record.judged && record.time <= now && now - record.time < retry_after.count();
}

Status VerdictStore::read() {
    const auto text = read_if_there(path_, kMaxStore);
    if (!text) return tl::unexpected(text.error());
    if (!*text) return {};
    try {
        const json document = json::parse(**text);
        if (document.at("version") != kVersion) refuse_entry("unknown version");
        std::vector<VerdictRecord> records;
        for (const json& j : document.at("verdicts")) records.push_back(record_from(j));
        for (const VerdictRecord& record : records)
            if (record.judged) latest_[record.key.text()] = record;
        records_ = std::move(records);
        return {};
    } catch (const json::exception& error) {
        return fail(path_ + ": " + json_error_text(error.what()), EBADMSG);
    }
}

Status VerdictStore::load() {
    const Status done = read();
    if (done) return {};
    const std::string& why = done.error().text;
    const std::string aside = path_ + ".broken";
    if (::rename(path_.c_str(), aside.c_str()) != 0)
        return fail_errno(fmt::format("{}; cannot be renamed", why), errno);
    return fail(fmt::format("{}; renamed to {}, learning starts from scratch", why, aside), EBADMSG);
}

const VerdictRecord* VerdictStore::latest(const VerdictKey& key) const {
    const auto found = latest_.find(key.text());
    return found == latest_.end() ? nullptr : &found->second;
}

VerdictStore& VerdictStore::add(VerdictRecord record) {
    if (record.judged) latest_[record.key.text()] = record;
    records_.push_back(std::move(record));
    if (records_.size() > kMostRecords) forget_one();
    return *this;
}

// Removes the oldest record of a comparison that was cut off, else the oldest one that was judged again
// later, else the oldest one.
void VerdictStore::forget_one() {
    auto oldest = std::ranges::find_if(records_, [](const auto& r) { return !r.judged; });
    if (oldest == records_.end())
        oldest = std::ranges::find_if(records_, [&](const auto& r) {
            const VerdictRecord* last = latest(r.key);
            return last != nullptr && (last->time != r.time || last->comparison != r.comparison);
        });
    records_.erase(oldest == records_.end() ? records_.begin() : oldest);
}

std::string VerdictStore::text() const {
    json verdicts = json::array();
    for (const VerdictRecord& record : records_) verdicts.push_back(wq::to_json(record));
    const json document = {{"version", kVersion}, {"verdicts", verdicts}};
    // A name may be invalid UTF-8. It may be replaced here, because a verdict is about a class of names,
    // unlike a baseline.
    return document.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

Status VerdictStore::write(const std::string& path, const std::string& text) {
    return replace_state_file(path, text);
}

double evidence_of(double log) {
    return std::min(std::exp(log), std::numeric_limits<double>::max());
}

namespace {

namespace fs = std::filesystem;
constexpr std::size_t kMaxReadings = 4U << 20;  // bytes; 512 pairs of one counter have 20 KB
constexpr std::size_t kMaxCounters = 64;

constexpr std::string_view kJudged = ".json";
constexpr std::string_view kCutOff = ".cut-off.json";

// JSON in which invalid UTF-8 is replaced. So a record that was written and read again has the same text.
std::string text_of(const json& document) {
    return document.dump(-1, ' ', false, json::error_handler_t::replace);
}

// File names sort by the time at which the comparisons ended. Names of the same second differ in the hash of
// the comparison's key, target and number.
std::string file_of(const VerdictRecord& record) {
    const VerdictKey& key = record.key;
    const std::string about = text_of({key.kernel, key.topology, key.kind, key.reference, key.candidate,
                                       key.judge, record.target, record.comparison});
    return fmt::format("{:013}-{:016x}{}", record.time, hash_of(about), record.judged ? kJudged : kCutOff);
}

// Removes the oldest files. KEPT has just been written and stays, even if the clock was wrong.
void forget_oldest(const std::string& folder, const std::string& kept) {
    std::vector<fs::path> judged;
    std::vector<fs::path> cut_off;
    std::vector<fs::path> gone;  // first, files that a killed daemon left half written
    std::error_code error;
    for (auto at = fs::directory_iterator(folder, error); !error && at != fs::directory_iterator();
         at.increment(error)) {
        const std::string name = at->path().filename();
        if (name == kept) continue;
        if (name.ends_with(".json.new")) gone.push_back(at->path());
        if (name.ends_with(kJudged)) (name.ends_with(kCutOff) ? cut_off : judged).push_back(at->path());
    }
    const auto leave = [&](std::vector<fs::path>& files, std::size_t most) {
        if (files.size() <= most) return;
        std::ranges::sort(files);
        gone.insert(gone.end(), files.begin(), files.end() - static_cast<std::ptrdiff_t>(most));
    };
    const bool is_cut_off = kept.ends_with(kCutOff);
    leave(judged, kMostRead - (is_cut_off ? 0 : 1));
    leave(cut_off, kMostCutOffRead - (is_cut_off ? 1 : 0));
    for (const fs::path& file : gone) fs::remove(file, error);
}

std::vector<double> column(const json& list) {
    auto out = list.get<std::vector<double>>();
    if (out.size() > ComparisonReadings::kMost ||
        std::ranges::any_of(out, [](double v) { return !std::isfinite(v) || v <= 0; }))
        throw json::other_error::create(501, "not readings", nullptr);
    return out;
}

ComparisonReadings readings_from(const json& document) {
    ComparisonReadings out;
    for (const json& each : document) {
        const auto reference = column(each.at("reference"));
        const auto candidate = column(each.at("candidate"));
        if (out.counters.empty()) out.pairs.resize(reference.size());
        if (reference.size() != out.pairs.size() || candidate.size() != reference.size() ||
            out.counters.size() == kMaxCounters)
            throw json::other_error::create(501, "counters of different lengths", nullptr);
        out.counters.push_back({each.at("counter"), each.at("higher_is_better")});
        for (std::size_t i = 0; i < reference.size(); i++)
            out.pairs[i].push_back({reference[i], candidate[i]});
    }
    return out;
}

}  // namespace

void ComparisonReadings::add(std::vector<PairValues> pair) {
    if (pairs.size() < kMost) pairs.push_back(std::move(pair));
}

json to_json(const ComparisonReadings& readings) {
    json out = json::array();
    for (std::size_t i = 0; i < readings.counters.size(); i++) {
        json reference = json::array();
        json candidate = json::array();
        for (const auto& pair : readings.pairs) {
            reference.push_back(pair[i].reference);
            candidate.push_back(pair[i].candidate);
        }
        out.push_back({{"counter", readings.counters[i].name},
                       {"higher_is_better", readings.counters[i].higher_is_better},
                       {"reference", std::move(reference)},
                       {"candidate", std::move(candidate)}});
    }
    return out;
}

Status keep_readings(const Paths& paths, const VerdictRecord& record, const ComparisonReadings& readings) {
    if (readings.pairs.empty()) return {};
    std::error_code ignored;  // publish_file() reports the error
    fs::create_directories(paths.readings(), ignored);
    const std::string file = file_of(record);
    auto done = publish_file(paths.readings() + "/" + file, text_of(to_json(readings)) + "\n");
    forget_oldest(paths.readings(), file);
    return done;
}

Result<ComparisonReadings> read_readings(const Paths& paths, const VerdictRecord& record) {
    const std::string path = paths.readings() + "/" + file_of(record);
    const auto text = read_file(path, kMaxReadings);
    if (!text) return tl::unexpected(text.error());
    try {
        return readings_from(json::parse(*text));
    } catch (const json::exception& error) {
        return fail(path + ": " + json_error_text(error.what()), EBADMSG);
    }
}

}  // namespace wq
