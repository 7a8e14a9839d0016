import GattherdModel
import GattherdSync

/// The changes from other threads that the delivery has not applied yet; only the newest of each device.
struct DeliveryChanges: Sendable {
    struct Device: Sendable {
        /// True if the device was removed in between.
        var isRemoved = false
        var status: LinkStatus?
    }

    private(set) var devices: [String: Device] = [:]
    private(set) var descriptions: [String: DeviceDescription] = [:]
    private(set) var leases: [String: DeviceLease] = [:]
    /// The addresses of all devices, by name.
    var enrolled: [String: String]?
    /// The payload of `bridge/info`.
    var info: [UInt8]?
    /// The raised alerts.
    var alerts: [ActiveAlert]?
    /// The payload of `bridge/health`.
    var health: [UInt8]?
    private(set) var events: [LifecycleEvent] = []

    mutating func update(_ status: LinkStatus) {
        devices[status.device, default: Device()].status = status
    }

    mutating func remove(_ device: String) {
        devices[device] = Device(isRemoved: true)
        (descriptions[device], leases[device]) = (nil, nil)
    }

    mutating func describe(_ description: DeviceDescription) {
        descriptions[description.device] = description
    }

    mutating func update(_ lease: DeviceLease) {
        leases[lease.device] = lease
    }

    /// Appends an event; returns false if there is no room.
    mutating func append(_ event: LifecycleEvent) -> Bool {
        guard events.count < PublishQueue.maximumEvents else { return false }
        events.append(event)
        return true
    }
}

/// Collects changes on any thread, and wakes the delivery once for all that arrive before it reads them.
final class DeliveryInbox: Sendable {
    private struct State: Sendable {
        var changes = DeliveryChanges()
        var isAnnounced = false
    }

    private let state = Locked(State())

    /// Applies a change; returns true for the first one since ``drain()``, whose writer has to wake the delivery.
    func write(_ change: (inout DeliveryChanges) -> Void) -> Bool {
        state.withLock { state in
            change(&state.changes)
            defer { state.isAnnounced = true }
            return !state.isAnnounced
        }
    }

    /// Removes and returns all changes.
    func drain() -> DeliveryChanges {
        state.withLock { state in
            defer { state = State() }
            return state.changes
        }
    }
}
