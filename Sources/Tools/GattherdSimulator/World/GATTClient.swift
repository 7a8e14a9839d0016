import GattherdDBus
import GattherdGATT

/// The reads, writes and subscriptions that bluetoothd sends to peripherals for its clients.
final class GATTClient {
    /// The longest attribute value of the specification, in bytes.
    private static let maximumValueLength = 512
    /// The time from an unanswered request to the end of the link.
    static let unansweredDisconnectDelay = Duration.seconds(2)

    private let world: World
    private let requests: RequestTable
    private let sessions: NotifySessions
    private let sockets: SocketAcquisitions
    private let notifications: NotificationSender
    private let records: RecordSender
    private let pairing: PairingControl

    init(
        _ world: World,
        _ requests: RequestTable,
        _ sessions: NotifySessions,
        _ sockets: SocketAcquisitions,
        _ notifications: NotificationSender,
        _ records: RecordSender,
        _ pairing: PairingControl
    ) {
        self.world = world
        self.requests = requests
        self.sessions = sessions
        self.sockets = sockets
        self.notifications = notifications
        self.records = records
        self.pairing = pairing
    }

    func readValue(_ call: MethodCall, _ key: DeviceKey, _ index: Int) {
        guard let offset = Self.offset(call.arguments.first) else { return world.effects.fail(call, .invalidArguments) }
        send(.read(index, offset: offset), call, key)
    }

    func readDescriptor(_ call: MethodCall, _ key: DeviceKey, _ characteristic: Int, _ place: Int) {
        guard let offset = Self.offset(call.arguments.first) else { return world.effects.fail(call, .invalidArguments) }
        send(.readDescriptor(characteristic, place: place, offset: offset), call, key)
    }

    /// The option `offset`, 0 by default; `nil` if its type is not `q`.
    private static func offset(_ options: DBusValue?) -> Int? {
        guard let value = options?["offset"] else { return 0 }
        guard case .uint16(let offset) = value else { return nil }
        return Int(offset)
    }

    /// Writes a value.
    ///
    /// A command is answered at once, a request when the peripheral has answered.
    func writeValue(_ call: MethodCall, _ key: DeviceKey, _ index: Int) {
        let effects = world.effects
        guard let value = call.arguments.first?.bytes else { return effects.fail(call, .invalidArguments) }
        guard let device = world.devices[key], device.isConnected else { return effects.fail(call, .notConnected) }
        guard device.gatt?.characteristics[index]?.writeSocket == nil else { return effects.fail(call, .writeAcquired) }
        guard value.count <= Self.maximumValueLength else { return effects.fail(call, .invalidLength) }
        let options = call.arguments.count > 1 ? call.arguments[1] : nil
        guard let offset = Self.offset(options) else { return effects.fail(call, .invalidArguments) }
        let properties = world.air.peripherals[key.peripheral].characteristics[index].spec.properties
        let type = options?["type"]?.string ?? (properties.contains(.write) ? "request" : "command")
        if type == "command", options?["type"] != nil || properties.contains(.writeWithoutResponse) {
            effects.reply(call)
            writeCommand(value, offset: offset, key, index)
        } else if type == "command" || !properties.contains(.write) {
            effects.fail(call, .notSupported)
        } else {
            send(.write(index, value, offset: offset), call, key)
        }
    }

    /// Sends a packet of a write socket to the peripheral, truncated to the longest attribute value.
    func receive(_ packet: [UInt8], from socket: SocketID) {
        guard let (key, index) = sockets.owner(of: socket), world.devices[key]?.isConnected == true else { return }
        writeCommand(Array(packet.prefix(Self.maximumValueLength)), offset: 0, key, index)
    }

    /// Sends a write command, which the peripheral never answers and ignores if it needs encryption.
    private func writeCommand(_ value: [UInt8], offset: Int, _ key: DeviceKey, _ index: Int) {
        let characteristic = world.air.peripherals[key.peripheral].characteristics[index]
        guard !characteristic.spec.isEncrypted || world.devices[key]?.isEncrypted == true else { return }
        write(value, offset: offset, key, index)
    }

    func startNotify(_ call: MethodCall, _ key: DeviceKey, _ index: Int) {
        if sessions.start(call, key, index) { send(.startNotify(index), call, key) }
    }

    /// Ends a client's session, or the acquisition of any client.
    ///
    /// Returns true if that crashes bluetoothd: BlueZ up to 5.83 uses freed memory after an `AcquireNotify` without an
    /// answer.
    func stopNotify(_ call: MethodCall, _ key: DeviceKey, _ index: Int) -> Bool {
        guard world.devices[key]?.gatt?.characteristics[index]?.isNotifyStuck != true else { return true }
        endNotify(call, key, index)
        return false
    }

    private func endNotify(_ call: MethodCall, _ key: DeviceKey, _ index: Int) {
        guard sockets.closeNotify(key, index) || sessions.stop(of: call.sender, key, index) else {
            return world.effects.fail(call, .noNotifySession)
        }
        world.effects.reply(call)
    }

    func acquireNotify(_ call: MethodCall, _ key: DeviceKey, _ index: Int) {
        if sockets.reserveNotify(call, key, index) { send(.acquireNotify(index), call, key) }
    }
}

// MARK: - Pending requests

extension GATTClient {
    /// Sends a request to the peripheral, which answers after its latency or never.
    private func send(_ kind: GATTRequest.Kind, _ call: MethodCall, _ key: DeviceKey) {
        guard world.devices[key]?.isConnected == true else { return world.effects.fail(call, .notConnected) }
        let id = world.clock.makeID()
        requests.insert(GATTRequest(key: key, call: call, kind: kind), id)
        if world.isReachable(key) {
            world.clock.schedule(.finish(id), after: world.air.peripherals[key.peripheral].attLatency)
        } else {
            world.clock.schedule(.timeOut(id), after: world.timing.attTimeout)
        }
    }

    /// Fails an unanswered request, after which bluetoothd closes the link.
    func timeOut(_ id: UInt64) {
        guard let request = requests.remove(id), let device = world.devices[request.key] else { return }
        fail(request)
        let timer = SimulationTimer.linkDown(request.key, linkEpoch: device.linkEpoch, .unanswered)
        world.clock.schedule(timer, after: Self.unansweredDisconnectDelay)
    }

    /// Fails a device's requests at the end of the link.
    func failAll(of key: DeviceKey) {
        for request in requests.removeAll(of: key) { fail(request) }
    }

    /// Fails a request; BlueZ up to 5.83 never answers an `AcquireNotify`, and keeps the characteristic acquired.
    private func fail(_ request: GATTRequest) {
        if case .acquireNotify(let index) = request.kind, !world.answersFailedAcquire {
            return sockets.keepNotify(request.key, index)
        }
        sockets.cancelNotify(request)
        world.effects.fail(request.call, .att(0x0E))
    }

    /// Drops a device's requests, which are never answered.
    func dropAll(of key: DeviceKey) {
        _ = requests.removeAll(of: key)
    }

    /// Drops the requests of a client that left the bus.
    func removeClient(_ client: String) {
        for request in requests.removeAll(from: client) { sockets.cancelNotify(request) }
    }

    /// Performs a request that has reached the peripheral, and answers its call.
    func finish(_ id: UInt64) {
        guard let request = requests.remove(id) else { return }
        let (key, call) = (request.key, request.call)
        guard world.isReachable(key) else {
            requests.insert(request, id)
            return world.clock.schedule(.timeOut(id), after: world.timing.attTimeout)
        }
        guard !needsEncryption(request) else {
            requests.hold(request, id)
            return pairing.pairForRequest(key)
        }
        switch request.kind {
        case .read(let index, let offset): finishRead(call, key, index, offset)
        case .readDescriptor(let index, let place, let offset): finishReadDescriptor(call, key, index, place, offset)
        case .write(let index, let value, let offset): finishWrite(call, value, offset: offset, key, index)
        case .startNotify(let index): sessions.finishStart(call, key, index)
        case .acquireNotify(let index): sockets.finishNotify(call, key, index)
        }
    }

    private func needsEncryption(_ request: GATTRequest) -> Bool {
        let characteristic = world.air.peripherals[request.key.peripheral].characteristics[request.kind.characteristic]
        return characteristic.spec.isEncrypted && world.devices[request.key]?.isEncrypted == false
    }

    /// Answers a read, which also signals `Value`.
    private func finishRead(_ call: MethodCall, _ key: DeviceKey, _ index: Int, _ offset: Int) {
        world.air.peripherals[key.peripheral].updateClock(index, at: world.clock.now)
        switch world.air.peripherals[key.peripheral].read(index, offset: offset) {
        case .success(let value):
            world.devices[key]?.gatt?.characteristics[index]?.value = value
            world.effects.changed(call.path, InterfaceName.characteristic, [Property("Value", .bytes(value))])
            world.effects.reply(call, .bytes(value))
        case .failure(let error): world.effects.fail(call, .att(error.code))
        }
    }

    private func finishReadDescriptor(
        _ call: MethodCall,
        _ key: DeviceKey,
        _ index: Int,
        _ place: Int,
        _ offset: Int
    ) {
        let stored = world.air.peripherals[key.peripheral].characteristics[index].descriptorValue(place)
        guard offset <= stored.count else { return world.effects.fail(call, .att(0x07)) }
        let value = Array(stored.dropFirst(offset))
        world.devices[key]?.gatt?.characteristics[index]?.descriptors[place].value = value
        world.effects.changed(call.path, InterfaceName.descriptor, [Property("Value", .bytes(value))])
        world.effects.reply(call, .bytes(value))
    }

    private func finishWrite(_ call: MethodCall, _ value: [UInt8], offset: Int, _ key: DeviceKey, _ index: Int) {
        if let error = write(value, offset: offset, key, index) {
            world.effects.fail(call, .att(error.code))
        } else {
            world.effects.reply(call)
        }
    }

    /// Writes a value to the peripheral, which may notify it to all subscribers.
    @discardableResult
    private func write(_ value: [UInt8], offset: Int, _ key: DeviceKey, _ index: Int) -> ATTError? {
        let spec = world.air.peripherals[key.peripheral].spec
        let uuid = world.air.peripherals[key.peripheral].characteristics[index].spec.uuid
        do throws(ATTError) {
            let echo = try world.air.peripherals[key.peripheral].write(index, value, offset: offset)
            world.effects.record(.write(spec.address, uuid, value, error: nil))
            if let echo { notifications.send(key.peripheral, index, echo) }
            records.write(value, key.peripheral, index)
            answer(value, key.peripheral, index)
            return nil
        } catch {
            world.effects.record(.write(spec.address, uuid, value, error: error.code))
            return error
        }
    }
}

extension GATTClient {
    /// Sends the notifications that answer a written value.
    private func answer(_ value: [UInt8], _ peripheral: Int, _ place: Int) {
        let characteristics = world.air.peripherals[peripheral].characteristics
        guard world.air.peripherals[peripheral].silence == .off else { return }
        for answer in characteristics[place].spec.writing.answers(to: value) {
            let other = answer.characteristic.map { uuid in characteristics.firstIndex { $0.spec.uuid == uuid } }
            guard let target = other ?? place else { continue }
            for notification in answer.notifications { notifications.send(peripheral, target, notification) }
        }
    }
}

extension SimulatedPeripheral.Characteristic {
    /// The value of a descriptor.
    fileprivate func descriptorValue(_ place: Int) -> [UInt8] {
        let descriptor = spec.allDescriptors[place]
        guard descriptor.uuid == .clientConfiguration, isSubscribed else { return descriptor.value }
        // Client Characteristic Configuration: bit 0 is notify, bit 1 is indicate.
        return [spec.properties.contains(.notify) ? 1 : 2, 0]
    }
}
