import GattherdTransducer

/// A slider from 0 to 1 for a device that takes bytes from 0 to 255.
struct NumberSlider: Transducer {
    enum Event {
        case moved(ratio: Double)
        case written
        case failed
        case notified(UInt8)
        case tick
    }

    private var byte = Throttle<UInt8>(interval: .milliseconds(100), echoTimeout: .seconds(1))

    /// The position of the slider; it does not jump back while the device catches up.
    var output: Double? { byte.output.map { Double($0) / 255 } }
    var deadline: Duration? { byte.deadline }
    static var tick: Event? { .tick }

    mutating func handle(_ event: Event, at now: Duration) -> [Throttle<UInt8>.Effect] {
        switch event {
        case .moved(let ratio) where ratio.isNaN: []
        case .moved(let ratio): byte.handle(.set(Self.byte(ratio)), at: now)
        case .written: byte.handle(.written, at: now)
        case .failed: byte.handle(.failed, at: now)
        case .notified(let value): byte.handle(.observed(value), at: now)
        case .tick: byte.handle(.tick, at: now)
        }
    }

    private static func byte(_ ratio: Double) -> UInt8 {
        UInt8((min(max(ratio, 0), 1) * 255).rounded())
    }
}

/// Connects the slider with a characteristic; `write` returns when the device has confirmed.
func slider(
    clock: some Clock<Duration> = ContinuousClock(),
    write: @escaping @Sendable (UInt8) async throws -> Void
) -> TransducerRunner<NumberSlider> {
    TransducerRunner(NumberSlider(), clock: clock) { effect in
        switch effect {
        case .write(let byte):
            .start("write") { send in
                do {
                    try await write(byte)
                    send(.written)
                } catch {
                    send(.failed)
                }
            }
        }
    }
}
