// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/journal_socket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>

namespace wq {
namespace {

using testing::ElementsAre;

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

// The fields of a datagram, in their order. Lengths count, not line ends.
std::vector<std::string> fields_of(const std::string& datagram) {
    std::vector<std::string> out;
    for (std::size_t at = 0; at < datagram.size();) {
        const auto end = datagram.find('\n', at);
        std::uint64_t length = 0;
        for (std::size_t byte = 8; byte > 0; byte--)
            length = length << 8 | static_cast<unsigned char>(datagram[end + byte]);
        out.push_back(datagram.substr(at, end - at) + "=" + datagram.substr(end + 9, length));
        at = end + 9 + length;
        EXPECT_EQ(datagram[at++], '\n');
    }
    return out;
}

TEST(Journal, ADatagramHasTheFieldsOfItsLine) {
    const std::string text = "kcryptd: back\nPRIORITY=0 to 'default'" + std::string(300, '!');
    EXPECT_THAT(fields_of(journal_datagram({LOG_INFO, Event::restored, text, {{"WQ_NAME", "kcryptd"}}})),
                ElementsAre("MESSAGE=" + text, "PRIORITY=6", "SYSLOG_IDENTIFIER=wq-tuned",
                            "MESSAGE_ID=2f8fec0c460140d0bcee5e705550124c", "WQ_NAME=kcryptd"));
    EXPECT_THAT(fields_of(journal_datagram({LOG_ERR, Event::none, ""})),
                ElementsAre("MESSAGE=", "PRIORITY=3", "SYSLOG_IDENTIFIER=wq-tuned"));
}

}  // namespace
}  // namespace wq
