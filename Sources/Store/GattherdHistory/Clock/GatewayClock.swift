public import GattherdModel

/// The gateway's clocks.
public struct GatewayClock: Sendable {
    /// The wall clock.
    public var now: @Sendable () -> Timestamp
    /// The time since the machine was started, including sleep; this clock cannot be set.
    public var uptime: @Sendable () -> Duration
    /// True if the kernel reports the wall clock as synchronised.
    public var isSynchronised: @Sendable () -> Bool
    /// The identifier of the machine's boot.
    public var boot: String
    /// A time that is certainly past, for example the time of the program's build.
    public var earliest = Timestamp(microseconds: .min)

    public init(
        now: @escaping @Sendable () -> Timestamp,
        uptime: @escaping @Sendable () -> Duration,
        isSynchronised: @escaping @Sendable () -> Bool,
        boot: String
    ) {
        self.now = now
        self.uptime = uptime
        self.isSynchronised = isSynchronised
        self.boot = boot
    }

    /// A wall clock that is correct from the start.
    public init(now: @escaping @Sendable () -> Timestamp) {
        self.init(now: now, uptime: { .zero }, isSynchronised: { true }, boot: "")
    }
}

/// The clocks at one moment, in microseconds.
struct ClockReading {
    let wall: Int64
    let uptime: Int64
    let isSynchronised: Bool

    /// The wall clock time at the machine's start, by this reading.
    var offset: Int64 { wall &- uptime }
}

extension GatewayClock {
    var reading: ClockReading {
        ClockReading(
            wall: now().microseconds,
            uptime: Timestamp(microseconds: 0).advanced(by: uptime()).microseconds,
            isSynchronised: isSynchronised()
        )
    }
}
