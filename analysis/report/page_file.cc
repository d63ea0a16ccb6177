// SPDX-License-Identifier: MIT
// Names in a run are untrusted text. Inside a script element an HTML parser only reacts to "</script" and
// "<!--", which both begin with "<". So "<" is written as JSON's \u003c.
#include "page_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <initializer_list>

#include "common/files/pending.h"
#include "common/json/json_read.h"

namespace forktail::analysis::report
{

namespace
{

// JSON without anything that an HTML parser would take as markup. Bytes that are not UTF-8 become U+FFFD.
std::string ScriptSafe(const common::Json &json)
{
	std::string plain = json.dump(-1, ' ', false, common::Json::error_handler_t::replace);
	std::string text;
	text.reserve(plain.size() + plain.size() / 64);
	for (char c : plain) {
		if (c == '<')
			text += "\\u003c";
		else
			text += c;
	}
	return text;
}

bool WriteFile(const std::string &path, std::initializer_list<std::string_view> parts, uint32_t mode,
	       std::string *error)
{
	common::Pending pending;
	if (!pending.Begin(path, common::Pending::kFile, error))
		return false;
	FILE *file = fopen(pending.at().c_str(), "wb");
	bool ok = file != nullptr;
	for (std::string_view part : parts)
		ok = ok && fwrite(part.data(), 1, part.size(), file) == part.size();
	int why = errno;
	if (file && fclose(file) != 0 && ok) {
		ok = false;
		why = errno;
	}
	if (ok)
		return pending.Commit(error, mode);
	*error = "cannot write the report to " + path + ": " + strerror(why);
	return false;
}

} // namespace

bool WritePage(std::string_view page, const nlohmann::json &run, const ReportArrays &arrays, uint32_t mode,
	       const std::string &path, std::string *error)
{
	constexpr std::string_view mark = "@DATA@";
	size_t at = page.find(mark);
	if (at == std::string_view::npos) {
		*error = "this forktail was built without the report pages";
		return false;
	}
	std::string json = ScriptSafe(run);
	std::string base64 = Base64(arrays.bytes);
	return WriteFile(path,
			 {page.substr(0, at), "<script type=\"application/json\" id=\"run\">", json,
			  "</script>\n<script type=\"text/plain\" id=\"arrays\">", base64, "</script>",
			  page.substr(at + mark.size())},
			 mode, error);
}

} // namespace forktail::analysis::report
