import GattherdMachines
import GattherdModel
import Testing

/// A link in virtual time: a peripheral that sends values, and a watch that runs at its deadlines.
private struct WatchedLink {
    var watch: SilenceWatch
    var now = Duration.zero
    var counts: [UInt64]
    /// The time of each stream's next value; `nil` while it is silent.
    var next: [Duration?]
    var periods: [Duration]
    var isDead = false
    var isServiceFrozen = false
    var isSubscribed = true
    var probes: [Duration] = []
    var steps: [(time: Duration, step: SilenceWatch.Step)] = []
    /// The times at which the watch ran.
    var wakeups: Set<Duration> = []

    init(
        _ limits: [SilenceLimit],
        periods: [Duration],
        _ memories: [SilenceWatch.Memory]? = nil,
        since start: Duration = .zero
    ) {
        watch = SilenceWatch(zip(limits, memories ?? limits.map { _ in .init() }).map { ($0, $1) }, at: start)
        now = start
        counts = limits.map { _ in 0 }
        next = periods.map { start + $0 }
        self.periods = periods
    }

    var isRecycled: Bool { steps.contains { if case .recycle = $0.step { true } else { false } } }

    /// Advances time until `end`, or until the link is replaced.
    mutating func run(until end: Duration) {
        while now < end, !isRecycled {
            let deadline = watch.deadline(at: now)
            send(until: min(deadline, end))
            now = max(now, min(deadline, end))
            wakeups.insert(now)
            watch.count(counts, at: now)
            guard deadline <= end, let step = watch.next(at: now) else { continue }
            perform(step)
        }
    }

    mutating func run(for duration: Duration) { run(until: now + duration) }

    private mutating func send(until time: Duration) {
        for index in next.indices {
            while !isDead, !isServiceFrozen, let due = next[index], due <= time {
                counts[index] += 1
                next[index] = due + periods[index]
            }
            if let due = next[index], due < time { next[index] = time + periods[index] }
        }
    }

    private mutating func perform(_ step: SilenceWatch.Step) {
        steps.append((now, step))
        guard case .probe(let stream) = step else { return }
        probes.append(now)
        let start = now
        let outcome: SilenceWatch.Outcome
        if isServiceFrozen {
            now += .seconds(5)
            outcome = .serviceUnanswered
        } else if isDead {
            now += .seconds(10)
            outcome = .unanswered
        } else {
            now += .milliseconds(50)
            outcome = .answered(isSubscribed: isSubscribed)
        }
        watch.count(counts, at: now)
        if let next = watch.probed(outcome, stream: stream, since: start, at: now) { steps.append((now, next)) }
    }
}

@Suite struct SilenceWatchTests {
    @Test(arguments: [(10, 35), (1000, 36), (5000, 50), (20_000, 110), (120_000, 611)])
    func `a dead link is found within a few of its stream's periods`(period: Int, limit: Int) {
        var link = WatchedLink([.learned], periods: [.milliseconds(period)])
        link.run(for: .seconds(3600))
        #expect(!link.isRecycled)
        let death = link.now
        link.isDead = true
        link.run(for: .seconds(1000))
        #expect(link.isRecycled)
        #expect(link.now - death <= .seconds(limit), "\(link.now - death)")
    }

    @Test func `a steady stream is never probed`() {
        var link = WatchedLink([.learned], periods: [.seconds(1)])
        link.run(for: .seconds(86_400))
        #expect(link.steps.isEmpty)
    }

    @Test func `a link without values that answers is probed at growing intervals and kept`() {
        var link = WatchedLink([.learned], periods: [.seconds(1)])
        link.next = [nil]
        link.run(for: .seconds(86_400))
        #expect(!link.isRecycled)
        #expect(link.probes.prefix(4).map { $0.components.seconds } == [60, 180, 420, 720])
        #expect((280...300).contains(link.probes.count), "\(link.probes.count)")
    }

    @Test func `a dead link without values is found`() {
        var link = WatchedLink([.learned], periods: [.seconds(1)])
        link.next = [nil]
        link.isDead = true
        link.run(for: .seconds(100))
        #expect(link.isRecycled)
        #expect(link.now <= .seconds(71))
    }

    @Test func `a strap taken off for a night keeps its link, and is watched closely afterwards`() {
        var link = WatchedLink([.learned], periods: [.seconds(1)])
        link.run(for: .seconds(600))
        link.next = [nil]
        link.run(for: .seconds(8 * 3600))
        #expect(!link.isRecycled)
        #expect(link.probes.count < 120)
        link.next = [link.now]
        link.run(for: .seconds(300))
        let death = link.now
        link.isDead = true
        link.run(for: .seconds(600))
        #expect(link.now - death < .seconds(60), "\(link.now - death)")
    }

    @Test func `one active stream proves that the link is alive for all streams`() {
        var link = WatchedLink([.learned, .learned], periods: [.seconds(1), .seconds(1)])
        link.next[1] = nil
        link.run(for: .seconds(86_400))
        #expect(link.steps.isEmpty)
    }

    @Test func `timers of many links fire together`() {
        var wakeups: Set<Duration> = []
        var probes = 0
        for number in 0..<64 {
            var link = WatchedLink([.learned], periods: [.seconds(1)], since: .milliseconds(37 * number))
            if number.isMultiple(of: 2) { link.next = [nil] }
            link.run(until: .seconds(600))
            wakeups.formUnion(link.wakeups)
            probes += link.probes.count
        }
        // Every 2.5 s, and for each probe.
        #expect(probes == 32 * 3)
        #expect(wakeups.count <= 240 + probes, "\(wakeups.count)")
    }

    @Test func `a watch is idle until a value arrives or a probe is due`() {
        let start = Duration.milliseconds(1234)
        var watch = SilenceWatch([(.learned, .init())], at: start)
        #expect(watch.isIdle([0], at: .seconds(61)))
        #expect(!watch.isIdle([1], at: .seconds(2)))
        #expect(!watch.isIdle([0], at: start + .seconds(60)))
        #expect(watch.isIdle([0], at: .seconds(7)))
        watch.doubt(at: .seconds(7))
        #expect(!watch.isIdle([0], at: .seconds(7)))
    }

    @Test func `a configured limit replaces a silent link that answers, and doubles while that does not help`() {
        var memories = [SilenceWatch.Memory()]
        var spans: [Int64] = []
        for _ in 0..<9 {
            var link = WatchedLink([.stated(.seconds(30))], periods: [.seconds(1)], memories)
            link.next = [nil]
            link.run(for: .seconds(86_400))
            #expect(link.isRecycled)
            spans.append(link.now.components.seconds)
            memories = link.watch.memories
        }
        #expect(spans == [60, 120, 240, 480, 960, 1920, 3840, 7200, 7200])
        var link = WatchedLink([.stated(.seconds(30))], periods: [.seconds(1)], memories)
        link.run(for: .seconds(60))
        #expect(link.watch.memories == [.init()])
    }

    @Test func `a stream with a limit of never is not watched`() {
        var link = WatchedLink([.never], periods: [.seconds(1)])
        link.next = [nil]
        link.isDead = true
        link.run(for: .seconds(86_400))
        #expect(link.steps.isEmpty)
    }

    @Test func `a peripheral that forgot the subscription gets a new link, at most every ten minutes`() {
        var link = WatchedLink([.learned], periods: [.seconds(1)])
        link.next = [nil]
        link.isSubscribed = false
        link.run(for: .seconds(86_400))
        #expect(link.steps.last?.step == .recycle(stream: 0, silence: .milliseconds(60_050), .forgottenSubscription))
        var memories = link.watch.memories
        memories[0] = link.watch.memories[0]
        var second = WatchedLink([.learned], periods: [.seconds(1)], memories)
        second.next = [nil]
        second.isSubscribed = false
        second.run(for: .seconds(500))
        #expect(!second.isRecycled)
    }

    @Test func `a frozen bluetoothd is recognised and asked again, and costs no link`() {
        var link = WatchedLink([.learned], periods: [.seconds(1)])
        link.run(for: .seconds(60))
        let frozen = link.now
        link.isServiceFrozen = true
        link.run(for: .seconds(300))
        let stall = link.steps.first { if case .stall = $0.step { true } else { false } }
        #expect((stall?.time ?? .zero) - frozen < .seconds(60))
        #expect((15...30).contains(link.probes.count), "\(link.probes.count)")
        link.isServiceFrozen = false
        link.run(for: .seconds(30))
        #expect(!link.isRecycled)
        #expect(link.steps.contains { $0.step == .resume })
    }

    @Test func `a link without limits is probed again until bluetoothd answers`() {
        var link = WatchedLink([.never], periods: [.seconds(1)])
        link.next = [nil]
        link.run(for: .seconds(10))
        link.isServiceFrozen = true
        link.watch.doubt(at: link.now)
        link.run(for: .seconds(60))
        #expect(link.steps.contains { if case .stall = $0.step { true } else { false } })
        link.isServiceFrozen = false
        link.run(for: .seconds(30))
        #expect(link.steps.last?.step == .resume)
    }

    @Test func `a device heard advertising is probed at once, but not at each advertisement`() {
        var link = WatchedLink([.learned], periods: [.seconds(1)])
        link.next = [nil]
        link.run(for: .seconds(10))
        for _ in 0..<600 {
            link.watch.doubt(at: link.now)
            link.run(for: .milliseconds(100))
        }
        #expect(link.probes.first.map { $0 < .seconds(11) } ?? false)
        #expect(link.probes.count <= 4, "\(link.probes)")
        #expect(!link.isRecycled)
    }

    @Test func `an active stream is not probed for an advertisement`() {
        var link = WatchedLink([.learned], periods: [.milliseconds(500)])
        for _ in 0..<100 {
            link.run(for: .seconds(1))
            link.watch.doubt(at: link.now)
        }
        #expect(link.probes.isEmpty)
    }

    @Test(arguments: 1...200 as ClosedRange<UInt64>)
    func `a link that answers is kept and a dead one is found, for any stream`(seed: UInt64) {
        var dice = SplitMix64(seed: seed)
        let period = Duration.milliseconds(Int.random(in: 5...60_000, using: &dice))
        var link = WatchedLink([.learned, .never], periods: [period, .seconds(3600)])
        for _ in 0..<Int.random(in: 1...40, using: &dice) {
            switch Int.random(in: 0..<6, using: &dice) {
            case 0: link.next[0] = nil
            case 1, 2: link.next[0] = link.now
            case 3: link.periods[0] = .milliseconds(Int.random(in: 5...60_000, using: &dice))
            case 4: link.watch.doubt(at: link.now)
            default: link.isServiceFrozen.toggle()
            }
            link.run(for: .seconds(Int.random(in: 1...2000, using: &dice)))
        }
        #expect(!link.isRecycled, "seed \(seed)")
        link.isServiceFrozen = false
        link.run(for: .seconds(30))
        let count = link.steps.count { $0.step == .resume }
        let stalls = link.steps.count { if case .stall = $0.step { true } else { false } }
        #expect(count > 0 || stalls == 0, "seed \(seed)")
        let death = link.now
        link.isDead = true
        link.run(for: .seconds(2000))
        #expect(link.isRecycled, "seed \(seed)")
        #expect(link.now - death <= .seconds(900), "seed \(seed): \(link.now - death)")
    }
}
