import FoundationEssentials

/// An `org.bluez` with virtual peripherals, which take the simulator's orders and write a truth log.
public protocol BluetoothStack: AnyObject, Sendable {
    /// The D-Bus address.
    var bus: String { get }
    /// The path of the truth log.
    var truthPath: String { get }

    /// Performs one order of the simulator, for example `drop strap-1`.
    ///
    /// `freeze-daemon on` suspends bluetoothd, `freeze-daemon off` continues it.
    ///
    /// - Throws: ``OrderRefused`` if the order is invalid.
    func order(_ words: [String]) async throws

    /// Stops all parts.
    ///
    /// - Throws: ``StackCrashed`` if a part had exited unexpectedly.
    func stop() async throws
}

extension BluetoothStack {
    /// The events at the peripherals until now, which the peripherals write to their truth log on request.
    ///
    /// Without a request the file may lack the last events, on a busy machine for a long time.
    public func truth() async throws -> Truth {
        try await order(["status"])
        return try Truth(path: truthPath)
    }
}

/// The Bluetooth stack of a test run.
public enum StackKind: String, Sendable {
    /// `gattherd-sim` on a private bus.
    case simulated
    /// bluetoothd, the kernel's Bluetooth and virtual controllers, in the machine of `Tests/RealBlueZ`.
    case real

    /// The stack of the environment variable GATTHERD_STACK, which the machine sets.
    public static let current: Self =
        ProcessInfo.processInfo.environment["GATTHERD_STACK"].flatMap(Self.init) ?? .simulated

    /// Starts the stack with the peripherals of a scenario.
    public func start(_ scenario: String) async throws -> any BluetoothStack {
        switch self {
        case .simulated: try await SimulatedStack(scenario)
        case .real: try await RealStack(scenario)
        }
    }
}

/// A stack refused an order.
public struct OrderRefused: Error, CustomStringConvertible {
    public let description: String

    init(_ words: [String], _ reason: String) {
        description = "\(words.joined(separator: " ")): \(reason)"
    }
}

/// A part of a stack exited unexpectedly.
public struct StackCrashed: Error, CustomStringConvertible {
    public let description: String

    public init(description: String) {
        self.description = description
    }
}
