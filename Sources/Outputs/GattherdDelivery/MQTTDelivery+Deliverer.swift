import GattherdLog
public import GattherdModel
import GattherdSync

/// The entry points for the rest of the daemon, callable from any thread.
extension MQTTDelivery: Deliverer {
    public nonisolated func update(_ status: LinkStatus) {
        writeInbox { $0.note(status) }
    }

    public nonisolated func remove(device: String) {
        writeInbox { $0.note(removed: device) }
    }

    public nonisolated func describe(_ device: DeviceDescription) {
        writeInbox { $0.note(device) }
    }

    public nonisolated func announce(_ event: LifecycleEvent) {
        writeInbox { if !$0.note(event) { counters.eventsDropped.add() } }
    }

    /// Sets the devices of the gateway and clears retained messages of all others.
    ///
    /// - Parameter addresses: The peripherals' addresses by the devices' names.
    public nonisolated func enrol(_ addresses: [String: String]) {
        writeInbox { $0.note(enrolled: addresses) }
    }

    /// Sets the payload of `bridge/info`, a JSON object.
    public nonisolated func setInfo(_ json: [UInt8]) {
        writeInbox { $0.note(info: json) }
    }

    /// Applies new publishing rules and permissions; readings and sets in progress may still follow the old ones.
    public nonisolated func adopt(_ publishing: PublishingRules, _ permissions: ControlPermissions) {
        let arePermissionsNew = self.permissions.withLock { current in
            defer { current = permissions }
            return current != permissions
        }
        loop.execute { self.assumeIsolated { $0.adopt(publishing, tellsAnew: arePermissionsNew) } }
    }

    private nonisolated func writeInbox(_ change: (inout DeliveryInbox) -> Void) {
        let isFirst = inbox.withLock { inbox in
            change(&inbox)
            return inbox.takeTurn()
        }
        guard isFirst else { return }
        loop.execute { self.assumeIsolated { $0.take($0.inbox.withLock { $0.take() }) } }
    }
}
