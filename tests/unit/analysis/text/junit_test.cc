// SPDX-License-Identifier: MIT
// JUnit's XML, read back by a strict XML parser.
#include "analysis/text.h"
#include "tests/support/catch.h"
#include "tests/support/process.h"
#include "tests/support/tempdir.h"

using namespace forktail::analysis;
using forktail::test::TempDir;
using forktail::test::write_file;

namespace
{

// The result of Python's parser: each element's name, its attributes by name, and its text.
std::string ReadBack(const std::string &xml)
{
	TempDir dir;
	write_file(dir.file("junit.xml"), xml);
	const forktail::test::Result result =
	    forktail::test::run({"/usr/bin/python3", "-c",
				 "import sys, xml.etree.ElementTree as e\n"
				 "for x in e.parse(sys.argv[1]).iter():\n"
				 "  print(x.tag, sorted(x.attrib.items()), ascii((x.text or '').strip()))",
				 dir.file("junit.xml")});
	INFO(result.err);
	REQUIRE(result.status == 0);
	return result.out;
}

} // namespace

TEST_CASE("junit: each outcome, and the counts of all")
{
	JunitSuite suite = {
	    "forktail gate RUN",
	    {{"p99 < 5ms", "forktail.gate", JunitCase::kPassed, "", "p99 is 1 ms", 1.5},
	     {"p99.9 < 5ms", "forktail.gate", JunitCase::kFailed, "p99.9 is 21 ms", "by fork", 0.25},
	     {"rps > 1", "forktail.gate", JunitCase::kError, "there is no log", "", 0},
	     {"x", "forktail.gate", JunitCase::kSkipped, "not asked", "", 0}}};
	const std::string counts = "('errors', '1'), ('failures', '1'), ('name', 'forktail gate RUN'), "
				   "('skipped', '1'), ('tests', '4'), ('time', '1.750000')";
	CHECK(
	    ReadBack(JunitXml(suite)) ==
	    "testsuites [" + counts +
		"] ''\n"
		"testsuite [" +
		counts +
		"] ''\n"
		"testcase [('classname', 'forktail.gate'), ('name', 'p99 < 5ms'), ('time', '1.500000')] ''\n"
		"system-out [] 'p99 is 1 ms'\n"
		"testcase [('classname', 'forktail.gate'), ('name', 'p99.9 < 5ms'), ('time', '0.250000')] "
		"''\n"
		"failure [('message', 'p99.9 is 21 ms'), ('type', 'forktail.gate')] 'p99.9 is 21 ms\\nby "
		"fork'\n"
		"system-out [] 'by fork'\n"
		"testcase [('classname', 'forktail.gate'), ('name', 'rps > 1'), ('time', '0.000000')] ''\n"
		"error [('message', 'there is no log'), ('type', 'forktail.gate')] 'there is no log'\n"
		"testcase [('classname', 'forktail.gate'), ('name', 'x'), ('time', '0.000000')] ''\n"
		"skipped [('message', 'not asked')] ''\n");
}

TEST_CASE("junit: any text stays text, and characters that XML forbids are visible")
{
	JunitSuite suite = {"a\"b'<&>]]>",
			    {{"\x1b]52;c\a", "\xff\xef\xbf\xbe", JunitCase::kFailed,
			      "</failure>\r\n\xef\xbf\xbf", "]]>\n\x01\tä\xef\xbf\xbd", 0}}};
	const std::string read = ReadBack(JunitXml(suite));
	CHECK(read.find(R"(('name', 'a"b\'<&>]]>'))") != std::string::npos);
	CHECK(read.find(R"(('classname', '\\xff\\ufffe'), ('name', '\\x1b]52;c\\x07'))") !=
	      std::string::npos);
	CHECK(read.find(R"(('message', '</failure>\\x0d\\x0a\\uffff'))") != std::string::npos);
	CHECK(read.find(R"('</failure>\\x0d\n\\uffff\n]]>\n\\x01\\x09\xe4\ufffd')") != std::string::npos);
	CHECK(read.find(R"(system-out [] ']]>\n\\x01\\x09\xe4\ufffd')") != std::string::npos);
	INFO(read);
	CHECK(ReadBack(JunitXml({"none", {}})).find("('tests', '0')") != std::string::npos);
}
