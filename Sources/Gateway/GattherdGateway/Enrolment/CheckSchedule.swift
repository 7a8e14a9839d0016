import GattherdSync

/// The times of the checks of enrolled devices; each check is a pass over all devices.
final class CheckSchedule: Sendable {
    /// The bounds of the time between two checks.
    static let shortest = Duration.seconds(1)
    static let longest = Duration.seconds(900)
    /// The time between two checks while candidates or peripherals wait.
    static let urgent = Duration.seconds(10)

    private let interval: LatestValue<Duration>
    private let clock = LoopClock.loop

    /// - Parameter interval: The time between two checks, until ``set(_:)``.
    init(_ interval: Duration = longest) {
        self.interval = LatestValue(interval)
    }

    /// Returns the time between two checks: half of the shortest `forget_after`, or less if something waits.
    static func interval(forgetAfter: [Duration], isUrgent: Bool) -> Duration {
        let needed = forgetAfter.min().map { $0 / 2 } ?? longest
        let regular = min(max(needed, shortest), longest)
        return isUrgent ? min(regular, urgent) : regular
    }

    /// Sets the time between two checks; a shorter one applies to the current wait too.
    func set(_ interval: Duration) {
        self.interval.set(interval)
    }

    /// Requests checks until cancelled.
    func run(_ check: @Sendable () -> Void) async {
        var last = clock.now
        while !Task.isCancelled {
            let present = interval.state
            let rest = last.advanced(by: present) - clock.now
            if rest > .zero {
                await wait(atMost: rest) { [interval] in
                    for await changed in interval.watch() where changed != present { return }
                }
            } else {
                last = clock.now
                check()
            }
        }
    }
}
