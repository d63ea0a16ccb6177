// SPDX-License-Identifier: MIT
// Requests to a metrics server at a port or a Unix socket, without a client that would correct them, and
// values in its answers.
#pragma once
#include <arpa/inet.h>
#include <cmath>
#include <netinet/in.h>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace forktail::test
{

inline int Connect(const std::string &where)
{
	sockaddr_un path = {};
	sockaddr_in port = {};
	bool local = where[0] == '/';
	path.sun_family = AF_UNIX;
	port.sin_family = AF_INET;
	if (local)
		where.copy(path.sun_path, sizeof path.sun_path - 1);
	else
		port.sin_port = htons(static_cast<uint16_t>(std::stoi(where.substr(where.rfind(':') + 1))));
	port.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	int fd = socket(local ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	timeval limit = {20, 0};
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	int rc = local ? connect(fd, reinterpret_cast<sockaddr *>(&path), sizeof path)
		       : connect(fd, reinterpret_cast<sockaddr *>(&port), sizeof port);
	if (rc == 0)
		return fd;
	close(fd);
	return -1;
}

// Everything received until the server closes. "" if it refuses the connection.
inline std::string Http(const std::string &where, const std::string &request)
{
	int fd = Connect(where);
	if (fd < 0)
		return "";
	for (size_t done = 0; done < request.size();) {
		ssize_t n = send(fd, request.data() + done, request.size() - done, MSG_NOSIGNAL);
		if (n <= 0)
			break;
		done += static_cast<size_t>(n);
	}
	std::string answer;
	char bytes[65536];
	for (ssize_t n; (n = recv(fd, bytes, sizeof bytes, 0)) > 0;)
		answer.append(bytes, static_cast<size_t>(n));
	close(fd);
	return answer;
}

inline std::string Get(const std::string &where, const std::string &path = "/metrics",
		       const std::string &headers = "")
{
	return Http(where, "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n" + headers + "\r\n");
}

inline std::string Body(const std::string &answer)
{
	size_t end = answer.find("\r\n\r\n");
	return end == std::string::npos ? "" : answer.substr(end + 4);
}

inline std::string Status(const std::string &answer)
{
	return answer.substr(0, answer.find("\r\n"));
}

// The value of the line with this beginning. NaN without one.
inline double Value(const std::string &text, const std::string &line)
{
	size_t at = ("\n" + text).find("\n" + line + " ");
	return at == std::string::npos ? NAN : std::stod(text.substr(at + line.size() + 1));
}

} // namespace forktail::test
