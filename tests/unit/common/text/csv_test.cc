// SPDX-License-Identifier: MIT
// Rows and fields as in RFC 4180, with expected fields written by hand.
#include <string>
#include <vector>

#include "common/text.h"
#include "tests/support/catch.h"

namespace
{

using Rows = std::vector<std::vector<std::string>>;

// All rows of a text; *end: how the last field ended.
Rows rows_of(const std::string &text, char separator, csv_end *end, uint64_t *lines)
{
	const char *at = text.data(), *last = at + text.size();
	Rows rows;
	*lines = 0;
	while (at < last) {
		std::string room(csv_row_bytes(at, last, separator), ' ');
		rows.emplace_back();
		do {
			size_t length = 0;
			*end = csv_read(&at, last, separator, room.data(), &length, lines);
			if (*end == CSV_OPEN_QUOTE || *end == CSV_AFTER_QUOTE)
				return rows;
			rows.back().push_back(room.substr(0, length));
		} while (*end == CSV_FIELD);
	}
	return rows;
}

TEST_CASE("fields end at separators and line ends, and quotes protect both")
{
	csv_end end;
	uint64_t lines;
	CHECK(rows_of("a,b\n1,2\n", ',', &end, &lines) == Rows{{"a", "b"}, {"1", "2"}});
	CHECK(end == CSV_ROW);
	CHECK(rows_of("a,b\r\n,\r\n\"x\"\r\nlast", ',', &end, &lines) ==
	      Rows{{"a", "b"}, {"", ""}, {"x"}, {"last"}});
	CHECK(rows_of("\"a,b\",\"he said \"\"no\"\"\",\"two\nlines\"\n", ',', &end, &lines) ==
	      Rows{{"a,b", "he said \"no\"", "two\nlines"}});
	CHECK(lines == 1);
	CHECK(rows_of("a\tb,c\n", '\t', &end, &lines) == Rows{{"a", "b,c"}});
	CHECK(rows_of("a,", ',', &end, &lines) == Rows{{"a", ""}});
	CHECK(rows_of("a\"b\",c", ',', &end, &lines) == Rows{{"a\"b\"", "c"}}); // a quote inside is plain
}

TEST_CASE("an unclosed quote and text after a quote are errors, and the position remains")
{
	csv_end end;
	uint64_t lines;
	rows_of("a,\"b", ',', &end, &lines);
	CHECK(end == CSV_OPEN_QUOTE);
	rows_of("\"a\"b,c", ',', &end, &lines);
	CHECK(end == CSV_AFTER_QUOTE);
	const std::string text = "\"open";
	const char *at = text.data();
	char room[8];
	size_t length = 0;
	CHECK(csv_read(&at, at + text.size(), ',', room, &length, &lines) == CSV_OPEN_QUOTE);
	CHECK(at == text.data());
}

} // namespace
