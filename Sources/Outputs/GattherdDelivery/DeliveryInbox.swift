import GattherdModel

/// The changes from other threads since the actor's last ``take()``; only the newest of each device.
struct DeliveryInbox: Sendable {
    struct Change: Sendable {
        /// True if the device was removed in between.
        var isRemoved = false
        var status: LinkStatus?
    }

    private(set) var devices: [String: Change] = [:]
    private(set) var descriptions: [String: DeviceDescription] = [:]
    /// The addresses of all devices, by name.
    private(set) var enrolled: [String: String]?
    private(set) var info: [UInt8]?
    private(set) var events: [LifecycleEvent] = []
    private var isAnnounced = false

    /// True for the first writer after a ``take()``, which has to wake the actor.
    mutating func takeTurn() -> Bool {
        defer { isAnnounced = true }
        return !isAnnounced
    }

    mutating func note(_ status: LinkStatus) {
        devices[status.device, default: Change()].status = status
    }

    mutating func note(removed device: String) {
        devices[device] = Change(isRemoved: true)
        descriptions[device] = nil
    }

    mutating func note(_ description: DeviceDescription) {
        descriptions[description.device] = description
    }

    mutating func note(enrolled: [String: String]) {
        self.enrolled = enrolled
    }

    mutating func note(info: [UInt8]) {
        self.info = info
    }

    /// Records an event; returns false if there is no room.
    mutating func note(_ event: LifecycleEvent) -> Bool {
        guard events.count < PublishQueue.maximumEvents else { return false }
        events.append(event)
        return true
    }

    mutating func take() -> DeliveryInbox {
        defer { self = DeliveryInbox() }
        return self
    }
}
