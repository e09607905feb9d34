/* SPDX-License-Identifier: MIT */
/* A C++ program as there are many: threads, containers, strings, queues. */
#include <atomic>
#include <cstdio>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <unistd.h>
#include <unordered_map>
#include <vector>

struct Session {
	virtual ~Session() = default;
	std::string name;
	std::vector<int> numbers;
	std::shared_ptr<Session> peer;
};

static std::map<std::string, std::unique_ptr<Session>> sessions[6];
static std::atomic<int> ready;

static void work(int id)
{
	std::unordered_map<int, std::string> index;
	std::deque<std::string> queue;
	auto &mine = sessions[id];

	for (int i = 0; i < 20000; i++) {
		auto s = std::make_unique<Session>();

		s->name = "session " + std::to_string(i * 7919 % 10007);
		s->numbers.resize(i % 97);
		if (i % 3 == 0)
			s->peer = std::make_shared<Session>();
		mine[s->name + " of " + std::to_string(id)] = std::move(s);
		index[i % 501] = std::string(i % 211, 'x');
		queue.push_back(std::to_string(i));
		if (queue.size() > 100)
			queue.pop_front();
		if (i % 5 == 0)
			mine.erase(mine.begin());
	}
	ready++;
	if (id % 2)
		for (;;)
			pause();
}

int main(int argc, char **argv)
{
	std::vector<std::thread> threads;

	for (int i = 0; i < 6; i++)
		threads.emplace_back(work, i);
	for (int i = 0; i < 6; i += 2)
		threads[i].join();
	while (ready < 6)
		std::this_thread::yield();
	if (argc > 1)
		std::fclose(std::fopen(argv[1], "w"));
	for (;;)
		pause();
}
