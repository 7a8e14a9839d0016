public import GattherdModel
public import GattherdTransducer

// The machines of the daemon are transducers, so `TransducerRunner` and the tests of the protocol can drive them.
// `LinkMachine` is not a transducer: it borrows the random generator of `SupervisorMachine` for its jitter.

extension ControlThrottle: Transducer {
    /// The device's value, if known.
    public var output: ControlValue? { confirmed }
    public static var tick: Event? { .tick }
}

extension DeliveryMachine: Transducer {
    public var output: SessionState { state }
    public var isFinished: Bool { state == .stopped }
    public static var tick: Event? { .tick }
}

extension SupervisorMachine: Transducer {
    /// The states of all links, by device.
    public var output: [String: LinkState] { table.devices.mapValues(\.link.state) }
}
