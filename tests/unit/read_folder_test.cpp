// SPDX-License-Identifier: LGPL-2.1-or-later
// Tests of base/file.h: reading small files and folders.
#include <gmock/gmock.h>

#include <cerrno>

#include "base/file.h"
#include "temp_tree.h"

namespace wq {
namespace {

using test::Dir;
using test::File;
using test::TempTree;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(ReadFirstLine, KeepsSpacesAndEndsAtTheNewline) {
    const TempTree tree{File("two", " a name \nmore\n"), File("one", "Y"), File("none", "\nmore\n")};
    EXPECT_EQ(read_first_line(tree.path("two")), " a name ");
    EXPECT_EQ(read_first_line(tree.path("one")), "Y");
    EXPECT_EQ(read_first_line(tree.path("none")), "");
}

// /proc/stat of a machine with many CPUs or interrupts is larger than kMaxFile.
TEST(ReadFirstLine, ReadsNoFurther) {
    const std::string rest(kMaxFile + 1, 'x');
    const TempTree tree{File("short", "cpu 1 2\n" + rest),
                        File("long", std::string(kMaxFile, 'y') + "\n" + rest),
                        File("longer", std::string(kMaxFile + 1, 'y') + "\n")};
    EXPECT_EQ(read_first_line(tree.path("short")), "cpu 1 2");
    EXPECT_EQ(read_first_line(tree.path("long")), std::string(kMaxFile, 'y'));
    EXPECT_EQ(read_first_line(tree.path("longer")), "");
}

TEST(ReadFirstLine, IsEmptyWhereNothingCanBeRead) {
    const TempTree tree{Dir("folder", {}), File("large", std::string(kMaxFile + 1, 'x'))};
    for (const char* name : {"missing", "folder", "large"})
        EXPECT_EQ(read_first_line(tree.path(name)), "") << name;
}

TEST(NamesIn, AreSortedAndIncludeHiddenOnes) {
    const TempTree tree{File("b"), File("a"), Dir("c", {File("inside")}), File(".hidden")};
    const auto names = names_in(tree.path(""));
    ASSERT_TRUE(names) << names.error().text;
    EXPECT_THAT(*names, ElementsAre(".hidden", "a", "b", "c"));
}

TEST(NamesIn, NameTheFolderThatCannotBeRead) {
    const TempTree tree{File("file")};
    for (const auto& [name, code] : {std::pair{"missing", ENOENT}, {"file", ENOTDIR}}) {
        const auto names = names_in(tree.path(name));
        ASSERT_FALSE(names) << name;
        EXPECT_EQ(names.error().code, code);
        EXPECT_THAT(names.error().text, HasSubstr(tree.path(name)));
        EXPECT_THAT(names_or_none(tree.path(name)), IsEmpty());
    }
}

}  // namespace
}  // namespace wq
