public import GattherdModel

/// The gateway's clocks, as history needs them.
public struct GatewayClock: Sendable {
    /// The wall clock.
    public var now: @Sendable () -> Timestamp
    /// The time since the machine was started, asleep or not; nobody sets it.
    public var uptime: @Sendable () -> Duration
    /// Whether the kernel takes the wall clock to be right.
    public var isSynchronised: @Sendable () -> Bool
    /// Another text after each start of the machine.
    public var boot: String
    /// A time that is surely past, as that of the program's build.
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

    /// A wall clock that is right from the start.
    public init(now: @escaping @Sendable () -> Timestamp) {
        self.init(now: now, uptime: { .zero }, isSynchronised: { true }, boot: "")
    }
}

/// One reading of the clocks, in microseconds.
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
