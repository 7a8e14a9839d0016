import FoundationEssentials

/// An `org.bluez` with virtual peripherals behind it, which take the simulator's orders and write down the truth.
public protocol BluetoothStack: AnyObject, Sendable {
    /// The address of the bus that it is on.
    var bus: String { get }
    /// Where the peripherals write what they did.
    var truthPath: String { get }

    /// Gives one order in the simulator's words, for example `drop strap-1`; carried out when this returns.
    ///
    /// `freeze-daemon on` stops bluetoothd where it is, `freeze-daemon off` lets it go on.
    ///
    /// - Throws: ``OrderRefused`` when it makes no sense.
    func order(_ words: [String]) async throws

    /// Ends everything.
    ///
    /// - Throws: ``StackCrashed`` when a part had ended before without an order.
    func stop() async throws
}

/// Which stack the tests of this run meet.
public enum StackKind: String, Sendable {
    /// `gattherd-sim` on a private bus.
    case simulated
    /// bluetoothd, the kernel's Bluetooth and virtual controllers, in the machine of `Tests/RealBlueZ`.
    case real

    /// By the variable GATTHERD_STACK, which the machine sets.
    public static let current: Self =
        ProcessInfo.processInfo.environment["GATTHERD_STACK"].flatMap(Self.init) ?? .simulated

    /// Brings up the stack with the peripherals of a scenario.
    public func start(_ scenario: String) async throws -> any BluetoothStack {
        switch self {
        case .simulated: try await SimulatedStack(scenario)
        case .real: try await RealStack(scenario)
        }
    }
}

/// A stack did not take an order.
public struct OrderRefused: Error, CustomStringConvertible {
    public let description: String

    init(_ words: [String], _ reason: String) {
        description = "\(words.joined(separator: " ")): \(reason)"
    }
}

/// A part of a stack ended by itself.
public struct StackCrashed: Error, CustomStringConvertible {
    public let description: String

    public init(description: String) {
        self.description = description
    }
}
