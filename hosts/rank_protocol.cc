// SPDX-License-Identifier: MIT
// See rank_protocol.h. A line must be shorter than PIPE_BUF to be written atomically, so long texts are cut.
#include "rank_protocol.h"

#include <unistd.h>

namespace forktail::hosts
{
namespace
{

constexpr size_t kLongest = 4000, kLongestText = 1500;

} // namespace

Told Tell(const std::string &what, const std::string &host)
{
	return {{"forktail", what}, {"host", host}};
}

void Send(const Told &told)
{
	auto line = [](const Told &t) {
		return t.dump(-1, ' ', true, Told::error_handler_t::replace) + "\n";
	};
	std::string text = line(told);
	if (text.size() > kLongest) {
		Told cut = told;
		for (auto &member : cut)
			if (member.is_string() && member.get_ref<const std::string &>().size() > kLongestText)
				member = member.get_ref<const std::string &>().substr(0, kLongestText);
			else if (member.is_array() && member.dump().size() > kLongestText)
				member = Told::array();
		text = line(cut);
	}
	for (size_t at = 0; at < text.size();) {
		ssize_t n = write(STDOUT_FILENO, text.data() + at, text.size() - at);
		if (n <= 0)
			return; // the reader is gone; the end of standard input reports that, too
		at += static_cast<size_t>(n);
	}
}

bool Understand(const std::string &line, Told *told)
{
	*told = Told::parse(line, nullptr, false);
	return told->is_object() && !TextOf(*told, "forktail").empty();
}

std::string TextOf(const Told &told, const char *member)
{
	auto found = told.find(member);
	return found != told.end() && found->is_string() ? found->get<std::string>() : "";
}

} // namespace forktail::hosts
