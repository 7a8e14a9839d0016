import GattherdSync

/// A clock that stands still until a test advances it.
final class VirtualClock: Clock, Sendable {
    struct Instant: InstantProtocol {
        var offset: Duration

        func advanced(by duration: Duration) -> Instant { Instant(offset: offset + duration) }
        func duration(to other: Instant) -> Duration { other.offset - offset }
        static func < (left: Instant, right: Instant) -> Bool { left.offset < right.offset }
    }

    let minimumResolution = Duration.nanoseconds(1)
    private let time = LatestValue(Duration.zero)
    private let waiting = LatestValue<[Duration]>([])

    var now: Instant { Instant(offset: time.state) }

    func sleep(until deadline: Instant, tolerance: Duration?) async throws {
        let times = time.watch()
        waiting.update { $0.append(deadline.offset) }
        defer {
            waiting.update { waiting in
                if let index = waiting.firstIndex(of: deadline.offset) { waiting.remove(at: index) }
            }
        }
        for await time in times where time >= deadline.offset { return }
        throw CancellationError()
    }

    /// Moves the time to `time` as soon as something sleeps until then.
    func advance(to time: Duration) async {
        for await waiting in waiting.watch() where waiting.contains(time) { break }
        self.time.set(time)
    }

    /// Moves the time on at once.
    func set(_ time: Duration) {
        self.time.set(time)
    }
}
