// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/ab/restore_left.h"

#include <fmt/format.h>
#include <syslog.h>

#include <algorithm>
#include <cerrno>

#include "base/text.h"

namespace wq::ab {
namespace {

bool may_be_ours(const LeftFile& left, const std::string& content) {
    return left.any || std::any_of(left.ours.begin(), left.ours.end(),
                                   [&](const std::string& ours) { return is_same_value(ours, content); });
}

// Each operator() restores one kind of Left and returns whether nothing is left.
class Restorer {
  public:
    Restorer(ValueFiles& files, const LeftStore& store, const Shell& shell, Log& log, bool again)
        : files_(files), store_(store), shell_(shell), log_(log), again_(again) {}

    bool operator()(const LeftFile& left) {
        const auto now = files_.read(left.path);
        if (!now && (now.error().code == ENOENT || now.error().code == ENODEV))
            return cleared(LOG_NOTICE, Event::none, now.error().text + "; nothing to put back");
        if (!now) return stayed(now.error().text);
        if (is_same_value(*now, left.original))
            return cleared(LOG_DEBUG, Event::none, left.path + ": is back");
        if (!may_be_ours(left, *now))
            return cleared(LOG_NOTICE, Event::external,
                           fmt::format("{}: has '{}', which an external writer wrote; left as it is",
                                       left.path, value_in(*now)));
        if (const auto back = put_value_back(files_, left.path, left.original); !back)
            return stayed(back.error().text);
        return cleared(LOG_INFO, Event::restored,
                       fmt::format("{}: back to '{}'", left.path, value_in(left.original)));
    }

    bool operator()(const LeftArm& left) {
        if (left.failed && !again_) {
            log_.write({LOG_INFO, Event::none,
                        fmt::format("arm {}: its undo failed; `wq-tunectl ab --restore` runs it again",
                                    printable(left.name))});
            return false;
        }
        if (const auto undone = undo(store_, left, shell_); !undone) {
            log_.write({LOG_ERR, Event::quarantined, undone.error().text});
            return false;
        }
        log_.write({LOG_INFO, Event::restored, fmt::format("arm {}: undone", printable(left.name))});
        return true;
    }

  private:
    bool cleared(int priority, Event event, const std::string& text) {
        log_.write({priority, event, text});
        const auto done = store_.clear();
        if (!done) log_.write({LOG_ERR, Event::none, done.error().text});
        return done.has_value();
    }
    bool stayed(const std::string& text) {
        log_.write({LOG_ERR, Event::quarantined,
                    "NOT PUT BACK: " + text + "; `wq-tunectl ab --restore` tries again"});
        return false;
    }

    ValueFiles& files_;
    const LeftStore& store_;
    const Shell& shell_;
    Log& log_;
    bool again_;
};

}  // namespace

bool restore_left(ValueFiles& files, const LeftStore& store, const Shell& shell, Log& log, bool again) {
    const auto left = store.load();
    if (!left) {
        log.write({LOG_ERR, Event::none, left.error().text});
        return false;
    }
    return !*left || std::visit(Restorer(files, store, shell, log, again), **left);
}

}  // namespace wq::ab
