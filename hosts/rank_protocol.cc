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

Message NewMessage(const std::string &what, const std::string &host)
{
	return {{"forktail", what}, {"host", host}};
}

void Send(const Message &message)
{
	auto line = [](const Message &t) {
		return t.dump(-1, ' ', true, Message::error_handler_t::replace) + "\n";
	};
	std::string text = line(message);
	if (text.size() > kLongest) {
		Message cut = message;
		for (auto &member : cut)
			if (member.is_string() && member.get_ref<const std::string &>().size() > kLongestText)
				member = member.get_ref<const std::string &>().substr(0, kLongestText);
			else if (member.is_array() && member.dump().size() > kLongestText)
				member = Message::array();
		text = line(cut);
	}
	for (size_t at = 0; at < text.size();) {
		ssize_t n = write(STDOUT_FILENO, text.data() + at, text.size() - at);
		if (n <= 0)
			return; // the reader is gone; the end of standard input reports that, too
		at += static_cast<size_t>(n);
	}
}

bool ParseMessage(const std::string &line, Message *message)
{
	*message = Message::parse(line, nullptr, false);
	return message->is_object() && !TextOf(*message, "forktail").empty();
}

std::string TextOf(const Message &message, const char *member)
{
	auto found = message.find(member);
	return found != message.end() && found->is_string() ? found->get<std::string>() : "";
}

} // namespace forktail::hosts
