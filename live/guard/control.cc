// SPDX-License-Identifier: MIT
// See control.h.
#include "control.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "live/guard/control_client/control_client.h"

namespace forktail::live::guard
{
namespace
{

constexpr int kMostCallers = 16, kBacklog = 16;
constexpr struct timeval kPatience = {2, 0};

} // namespace

// One connection. Its timer starts with the connection, so a slow sender cannot hold it open.
struct Caller {
	Control *control;
	struct bufferevent *stream;
	struct event *timer;
	bool answered = false;

	static void Accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *, int,
			   void *arg)
	{
		auto *control = static_cast<Control *>(arg);
		struct event_base *base = evconnlistener_get_base(listener);
		if (control->callers_ == kMostCallers) {
			close(fd);
			return;
		}
		auto *caller = new Caller{control, nullptr, nullptr};
		control->callers_++;
		caller->stream = bufferevent_socket_new(base, fd, BEV_OPT_CLOSE_ON_FREE);
		caller->timer = event_new(base, -1, 0, TimedOut, caller);
		if (!caller->stream || !caller->timer) {
			caller->End();
			return;
		}
		bufferevent_setwatermark(caller->stream, EV_READ, 0, kMostAsked + 1);
		bufferevent_setcb(caller->stream, OnRead, OnWritten, OnEvent, caller);
		bufferevent_enable(caller->stream, EV_READ | EV_WRITE);
		event_add(caller->timer, &kPatience);
	}

	static void OnRead(struct bufferevent *, void *arg) { static_cast<Caller *>(arg)->Read(); }
	static void OnWritten(struct bufferevent *, void *arg)
	{
		if (static_cast<Caller *>(arg)->answered)
			static_cast<Caller *>(arg)->End();
	}
	static void OnEvent(struct bufferevent *, short, void *arg) { static_cast<Caller *>(arg)->End(); }
	static void TimedOut(evutil_socket_t, short, void *arg) { static_cast<Caller *>(arg)->End(); }

	void Read()
	{
		struct evbuffer *input = bufferevent_get_input(stream);
		size_t length = 0;
		char *line = answered ? nullptr : evbuffer_readln(input, &length, EVBUFFER_EOL_CRLF);
		if (line) {
			std::string sentence;
			const std::string name(line, length);
			free(line);
			const bool yes = control->handler_(name, &sentence);
			Answer((yes ? "yes " : "no ") + sentence);
		} else if (!answered && evbuffer_get_length(input) > kMostAsked) {
			Answer("no the name is too long for a trigger");
		}
	}

	void Answer(const std::string &text)
	{
		answered = true;
		bufferevent_disable(stream, EV_READ);
		bufferevent_write(stream, (text + "\n").data(), text.size() + 1);
	}

	void End()
	{
		if (stream)
			bufferevent_free(stream);
		if (timer)
			event_free(timer);
		control->callers_--;
		delete this;
	}
};

Control::~Control()
{
	if (!listener_)
		return;
	evconnlistener_free(listener_);
	// After a restart the socket there may be the next guard's.
	struct stat there = {};
	if (lstat(path_.c_str(), &there) == 0 && there.st_ino == inode_)
		unlink(path_.c_str());
}

bool Control::Listen(struct event_base *base, const std::string &path, RequestHandler handler,
		     std::string *error)
{
	struct sockaddr_un at = {};
	struct stat there = {};
	at.sun_family = AF_UNIX;
	*error = "cannot listen on " + path + ": ";
	if (path.size() >= sizeof(at.sun_path)) {
		*error += strerror(ENAMETOOLONG);
		return false;
	}
	memcpy(at.sun_path, path.c_str(), path.size());
	if (lstat(path.c_str(), &there) == 0 && S_ISSOCK(there.st_mode))
		unlink(path.c_str());
	handler_ = std::move(handler);
	path_ = path;
	listener_ =
	    evconnlistener_new_bind(base, Caller::Accept, this, LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC,
				    kBacklog, reinterpret_cast<struct sockaddr *>(&at), sizeof(at));
	if (listener_ && chmod(path.c_str(), 0660) == 0 && lstat(path.c_str(), &there) == 0) {
		inode_ = there.st_ino;
		return true;
	}
	*error += strerror(errno);
	return false;
}

} // namespace forktail::live::guard
