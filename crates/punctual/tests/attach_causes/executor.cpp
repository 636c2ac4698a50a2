// An executor as robots have: callbacks of timers and subscriptions behind one epoll_wait(2).
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <map>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

class Executor {
	int epoll = epoll_create1(0);
	std::map<int, std::function<void()>> callbacks;

public:
	void add(int fd, std::function<void()> callback)
	{
		epoll_event event{};
		event.events = EPOLLIN;
		event.data.fd = fd;
		epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
		callbacks[fd] = std::move(callback);
	}
	void spin_once()
	{
		epoll_event events[8];
		int ready = epoll_wait(epoll, events, 8, -1);

		for (int i = 0; i < ready; i++)
			callbacks[events[i].data.fd]();
	}
};

int main(int, char **argv)
{
	long cycles = std::atol(argv[1]), period = std::atol(argv[2]);
	int timer = timerfd_create(CLOCK_MONOTONIC, 0);
	itimerspec every{ { 0, period }, { 0, period } };
	volatile double state = 1;
	Executor executor;

	executor.add(timer, [&] {
		std::uint64_t expired;

		if (read(timer, &expired, sizeof expired) < 0)
			std::exit(1);
		for (int i = 0; i < 20000; i++)
			state = state * 1.000001;
	});
	timerfd_settime(timer, 0, &every, nullptr);
	while (cycles--)
		executor.spin_once();
}
