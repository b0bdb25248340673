// SPDX-License-Identifier: LGPL-2.1-or-later
// Measures whether counting slows down one scope more than another, while a load runs:
//   observe WORKQUEUE FINE COARSE ROUNDS SECONDS
// A round has a turn of SECONDS for each of FINE and COARSE with the counters attached and without, in random
// order. It compares the kernel's own counts of started items. Prints one line of JSON:
//   every    N: one of N items was timed
//   rounds   items per second of each turn, in the order of `turns`
//   slower   by how much counting slows down FINE, COARSE, and COARSE more than FINE (`coarse_more`):
//            percent with a 95% interval (null below six rounds)
#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "bpf/work_counters.h"
#include "counters/counter_table.h"
#include "evidence/comparison.h"

namespace {

using Clock = std::chrono::steady_clock;
constexpr double kWashout = 0.5;  // s

[[noreturn]] void give_up(const std::string& why) {
    std::cerr << why << '\n';
    std::exit(1);
}

template <class T>
T or_exit(wq::Result<T> result) {
    if (!result) give_up(result.error().text);
    if constexpr (!std::is_void_v<T>) return *result;
}

void wait(double seconds) {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

class Observation {
  public:
    Observation(std::string workqueue, double seconds)
        : name_(std::move(workqueue)),
          file_("/sys/devices/virtual/workqueue/" + name_ + "/affinity_scope"),
          seconds_(seconds) {}

    // Returns the items started per second under SCOPE. Sets OTHER first, so that each turn has new pools.
    double turn(const std::string& scope, const std::string& other, bool counting) {
        write(other);
        write(scope);
        if (counting) {
            or_exit(counters_->attach({name_}, {}));
            counters_->sample(0, every_);
        }
        wait(kWashout);
        if (counting) or_exit(counters_->begin(0, 0));
        const auto start = Clock::now();
        const auto before = started();
        wait(seconds_);
        const auto after = started();
        const double took = std::chrono::duration<double>(Clock::now() - start).count();
        counters_->detach();
        if (after <= before) give_up("nothing was started under " + scope);
        return static_cast<double>(after - before) / took;
    }
    void sample(double rate) { every_ = wq::sampled_every(rate * seconds_); }
    [[nodiscard]] unsigned every() const { return every_; }

  private:
    void write(const std::string& scope) {
        std::ofstream file(file_);
        if (!(file << scope << std::flush)) give_up(file_ + " does not take " + scope);
    }
    std::uint64_t started() { return or_exit(counters_->traffic()).at(name_).started; }

    std::string name_, file_;
    double seconds_;
    unsigned every_ = 1;
    std::unique_ptr<wq::WorkCounters> counters_ = wq::make_bpf_counters();
};

nlohmann::ordered_json json_of(const std::vector<double>& differences) {
    const auto effect = wq::effect_of(differences);
    nlohmann::ordered_json out{{"percent", effect.percent}, {"interval", nullptr}};
    if (effect.interval) out["interval"] = {effect.interval->low, effect.interval->high};
    return out;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 6) give_up("usage: observe WORKQUEUE FINE COARSE ROUNDS SECONDS");
    const std::string fine = argv[2], coarse = argv[3];
    Observation observation(argv[1], std::stod(argv[5]));
    observation.sample(observation.turn(fine, coarse, false));

    std::mt19937 random(std::random_device{}());
    std::vector<double> of_fine, of_coarse, more;
    nlohmann::ordered_json out{{"every", observation.every()},
                               {"turns", {"fine off", "fine on", "coarse off", "coarse on"}},
                               {"rounds", nlohmann::json::array()}};
    for (int round = std::stoi(argv[4]); round > 0; round--) {
        std::vector<double> rates(4);
        std::vector<std::size_t> order{0, 1, 2, 3};
        std::shuffle(order.begin(), order.end(), random);
        for (const std::size_t turn : order)
            rates[turn] = observation.turn(turn < 2 ? fine : coarse, turn < 2 ? coarse : fine, turn % 2 == 1);
        of_fine.push_back(std::log(rates[0] / rates[1]));
        of_coarse.push_back(std::log(rates[2] / rates[3]));
        more.push_back(of_coarse.back() - of_fine.back());
        out["rounds"].push_back(rates);
    }
    out["slower"] = {
        {"fine", json_of(of_fine)}, {"coarse", json_of(of_coarse)}, {"coarse_more", json_of(more)}};
    std::cout << out.dump() << '\n';
}
