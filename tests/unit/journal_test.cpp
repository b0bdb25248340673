// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernel/journal.h"

#include <gtest/gtest.h>

namespace wq {
namespace {

// What a journal of that level writes of three lines.
std::string written(Journal& journal) {
    testing::internal::CaptureStderr();
    for (const auto& [priority, text] :
         {std::pair{LOG_WARNING, "warning"}, {LOG_INFO, "info"}, {LOG_DEBUG, "debug"}})
        journal.write({priority, Event::none, text});
    return testing::internal::GetCapturedStderr();
}

TEST(Journal, WritesWhatIsImportantEnough) {
    Journal journal;
    EXPECT_EQ(written(journal), "warning\ninfo\n");
    journal.set_max_level(LOG_DEBUG);
    EXPECT_EQ(written(journal), "warning\ninfo\ndebug\n");
    journal.set_max_level(LOG_ERR);
    EXPECT_EQ(written(journal), "");
}

}  // namespace
}  // namespace wq
