// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/observe/diagnose_json.h"

#include "ctl/json_values.h"
#include "ctl/observe/diagnose_command.h"
#include "ctl/render/terminal.h"

namespace wq::ctl {
namespace {

using Json = nlohmann::ordered_json;

Json number_or_null(std::size_t number) {
    return number == 0 ? Json(nullptr) : Json(number);
}
Json words_of(const std::vector<Scope>& scopes) {
    Json out = Json::array();
    for (const Scope scope : scopes) out.push_back(name_of(scope));
    return out;
}

Json work_json(const BusyWork& work, const DiagnosedWorkqueue& wq) {
    Json kworkers = Json::array();
    for (const auto& one : work.kworkers)
        kworkers.push_back(
            {{"name", one.name}, {"cpu", one.cpu}, {"allowed", word_or_null(one.cpus.list())}});
    return {{"cpu", work.cpu},
            {"function", word_or_null(work.function)},
            {"workqueue", wq.name},
            {"id", wq.id},
            {"kind", word_or_null(wq.kind)},
            {"kworkers", kworkers},
            {"per_second", or_null(work.per_second)},
            {"mean_ns", or_null(work.mean_ns)},
            {"longest_ns", or_null(work.longest_ns)}};
}

Json workqueue_json(const DiagnosedWorkqueue& wq) {
    return {{"name", wq.name},
            {"id", wq.id},
            {"kind", word_or_null(wq.kind)},
            {"cpu", wq.cpu},
            {"max_active", or_null(wq.max_active)},
            {"scope", name_or_null(wq.scope)},
            {"finer", words_of(wq.finer)},
            {"coarser", words_of(wq.coarser)},
            {"target", word_or_null(wq.target)},
            {"pool_cpus", number_or_null(wq.pool_cpus)},
            {"pool_shared", wq.pool_cpus == 0 ? Json(nullptr) : Json(wq.pool_shared)},
            {"lock_share", or_null(wq.lock_share)},
            {"lock_ns", or_null(wq.lock_ns)},
            {"lock_cpu", or_null(wq.lock_cpu)},
            {"items", or_null(wq.items)},
            {"cpu_hogs", or_null(wq.cpu_hogs)},
            {"cm_wakeups", or_null(wq.cm_wakeups)},
            {"repatriated", or_null(wq.repatriated)},
            {"mayday", or_null(wq.mayday)},
            {"rescued", or_null(wq.rescued)}};
}

}  // namespace

Json diagnosis_json(const Diagnosis& diagnosis) {
    Json work = Json::array(), workqueues = Json::array(), stuck = Json::array();
    for (const auto& one : diagnosis.work)
        work.push_back(work_json(one, diagnosis.workqueues.at(one.workqueue)));
    for (const auto& one : diagnosis.workqueues) workqueues.push_back(workqueue_json(one));
    for (const auto& one : diagnosis.stuck)
        stuck.push_back({{"name", one.name},
                         {"work", word_or_null(one.work)},
                         {"sleeps_in", word_or_null(one.sleeps_in)}});
    const Json isolated = isolated_json(diagnosis.isolated);
    return {{"seconds", diagnosis.seconds},
            {"online", diagnosis.online},
            {"cpu", diagnosis.cpu},
            {"unsampled", diagnosis.unsampled},
            {"attributed", name_of(diagnosis.by)},
            {"work", work},
            {"workqueues", workqueues},
            {"stuck", stuck},
            {"isolated", {{"cpus", diagnosis.isolated_cpus.list()}, {"work", isolated}}},
            {"missing", diagnosis.missing}};
}

void Paragraphs::add(const std::string& text, std::size_t indent) {
    const std::size_t width = columns_ > indent + 20 ? columns_ - indent : 20;
    for (const auto& line : wrap(text, width)) text_ += std::string(indent, ' ') + line + '\n';
}

}  // namespace wq::ctl
