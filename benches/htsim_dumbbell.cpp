// A dumbbell of N TCP flows for htsim (github.com/Broadcom/csg-htsim): the scenario of crates/simulator/benches/dumbbell.rs,
// with access links of each flow's own at both ends (1 ms, ten times the bottleneck) or, with "shared", all flows on the
// two ends. Built by benches/peers.sh against the libhtsim.a in the directory that HTSIM names.
//
//   htsim_dumbbell FLOWS SECONDS access|shared
//
// Prints one line of JSON. Nothing is logged, and acknowledgments pass a pipe alone where flows share the ends: htsim at
// its fastest.

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include <unistd.h>

#include "config.h"
#include "eventlist.h"
#include "network.h"
#include "pipe.h"
#include "queue.h"
#include "tcp.h"

static const int WIRE = 1250;

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: %s FLOWS SECONDS access|shared\n", argv[0]);
        return 2;
    }
    const int flows = atoi(argv[1]);
    const double seconds = atof(argv[2]);
    const bool access = !strcmp(argv[3], "access");

    EventList &events = EventList::getTheEventList();
    events.setEndtime(timeFromSec(seconds));
    Packet::set_packet_size(WIRE);

    const linkspeed_bps rate = speedFromMbps(uint64_t(flows));
    const double roundtrip = access ? 0.064 : 0.060;
    const double packets = 1.5 * flows * 1e6 * roundtrip / (8.0 * WIRE);
    const mem_b queue = mem_b(packets < 5 ? 5 : packets + 0.5) * WIRE;
    const mem_b unlimited = mem_b(1000000) * WIRE;

    // The library prints what flows do, which nobody asks for here.
    FILE *answer = fdopen(dup(1), "w");
    if (!answer || !freopen("/dev/null", "w", stdout)) return 1;
    Queue there(rate, queue, events, nullptr), back(rate, unlimited, events, nullptr);
    Pipe there_pipe(timeFromMs(30), events), back_pipe(timeFromMs(30), events);
    TcpRtxTimerScanner scanner(timeFromMs(10), events);

    std::vector<std::unique_ptr<Queue>> queues;
    std::vector<std::unique_ptr<Pipe>> pipes;
    std::vector<std::unique_ptr<Route>> routes;
    std::vector<std::unique_ptr<TcpSrc>> sources;
    std::vector<std::unique_ptr<TcpSink>> sinks;
    auto side = [&](Route &route) {
        queues.emplace_back(new Queue(10 * rate, unlimited, events, nullptr));
        pipes.emplace_back(new Pipe(timeFromMs(1), events));
        route.push_back(queues.back().get());
        route.push_back(pipes.back().get());
    };
    for (int flow = 0; flow < flows; flow++) {
        sources.emplace_back(new TcpSrc(nullptr, nullptr, events));
        sinks.emplace_back(new TcpSink());
        scanner.registerTcp(*sources.back());
        routes.emplace_back(new Route());
        Route &out = *routes.back();
        if (access) side(out);
        out.push_back(&there);
        out.push_back(&there_pipe);
        if (access) side(out);
        out.push_back(sinks.back().get());
        routes.emplace_back(new Route());
        Route &in = *routes.back();
        if (access) {
            side(in);
            in.push_back(&back);
        }
        in.push_back(&back_pipe);
        if (access) side(in);
        in.push_back(sources.back().get());
        sources.back()->connect(out, in, *sinks.back(), timeFromSec(double(flow) / flows));
    }
    while (events.doNextEvent()) {
    }

    uint64_t acknowledged = 0;
    for (const auto &source : sources) acknowledged += source->_last_acked / WIRE;
    fprintf(answer, "{\"simulator\":\"htsim\",\"flows\":%d,\"topology\":\"%s\",\"bottleneck_packets\":%llu}\n", flows,
            argv[3], static_cast<unsigned long long>(acknowledged));
    fclose(answer);
    return 0;
}
