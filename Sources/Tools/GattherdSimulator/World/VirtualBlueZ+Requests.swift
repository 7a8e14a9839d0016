import GattherdDBus
import GattherdGATT

// GATT requests: reads and writes, and the requests that subscribe.
extension VirtualBlueZ {
    /// The longest attribute value of the specification, in bytes.
    static let maximumValueLength = 512

    mutating func readValue(_ call: MethodCall, _ key: DeviceKey, _ index: Int) {
        guard let offset = Self.offset(call.arguments.first) else { return fail(call, .invalidArguments) }
        begin(.read(index, offset: offset), call, key)
    }

    mutating func readDescriptor(_ call: MethodCall, _ key: DeviceKey, _ characteristic: Int, _ place: Int) {
        guard let offset = Self.offset(call.arguments.first) else { return fail(call, .invalidArguments) }
        begin(.readDescriptor(characteristic, place: place, offset: offset), call, key)
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
    mutating func writeValue(_ call: MethodCall, _ key: DeviceKey, _ index: Int) {
        guard let value = call.arguments.first?.octets else { return fail(call, .invalidArguments) }
        guard let device = devices[key], device.isConnected else { return fail(call, .notConnected) }
        guard device.gatt?.characteristics[index]?.writeSocket == nil else { return fail(call, .writeAcquired) }
        guard value.count <= Self.maximumValueLength else { return fail(call, .invalidLength) }
        let options = call.arguments.count > 1 ? call.arguments[1] : nil
        guard let offset = Self.offset(options) else { return fail(call, .invalidArguments) }
        let properties = peripherals[key.peripheral].characteristics[index].spec.properties
        let type = options?["type"]?.string ?? (properties.contains(.write) ? "request" : "command")
        if type == "command", options?["type"] != nil || properties.contains(.writeWithoutResponse) {
            reply(call)
            writeCommand(value, offset: offset, key, index)
        } else if type == "command" || !properties.contains(.write) {
            fail(call, .notSupported)
        } else {
            begin(.write(index, value, offset: offset), call, key)
        }
    }

    /// Sends a write command, which the peripheral never answers and ignores if it needs encryption.
    mutating func writeCommand(_ value: [UInt8], offset: Int = 0, _ key: DeviceKey, _ index: Int) {
        let characteristic = peripherals[key.peripheral].characteristics[index]
        guard !characteristic.spec.isEncrypted || devices[key]?.isEncrypted == true else { return }
        write(value, offset: offset, key, index)
    }

    /// Sends a request to the peripheral, which answers after its latency or never.
    mutating func begin(_ kind: GATTRequest.Kind, _ call: MethodCall, _ key: DeviceKey) {
        guard devices[key]?.isConnected == true else { return fail(call, .notConnected) }
        let id = makeID()
        requests.insert(GATTRequest(key: key, call: call, kind: kind), id)
        if isReachable(key) {
            schedule(.finish(id), after: peripherals[key.peripheral].attLatency)
        } else {
            schedule(.timeOut(id), after: timing.attTimeout)
        }
    }

    /// Fails an unanswered request, after which bluetoothd closes the link.
    mutating func timeOut(_ id: UInt64) {
        guard let request = requests.remove(id), let device = devices[request.key] else { return }
        releaseAcquisition(request)
        fail(request.call, .att(0x0E))
        let timer = Timer.linkDown(request.key, linkEpoch: device.linkEpoch, .unanswered)
        schedule(timer, after: Self.unansweredDisconnectDelay)
    }

    mutating func finish(_ id: UInt64) {
        guard let request = requests.remove(id) else { return }
        let (key, call) = (request.key, request.call)
        guard isReachable(key) else {
            requests.insert(request, id)
            return schedule(.timeOut(id), after: timing.attTimeout)
        }
        guard !needsEncryption(request) else { return hold(request, id) }
        switch request.kind {
        case .read(let index, let offset): finishRead(call, key, index, offset)
        case .readDescriptor(let index, let place, let offset): finishReadDescriptor(call, key, index, place, offset)
        case .write(let index, let value, let offset):
            if let error = write(value, offset: offset, key, index) {
                fail(call, .att(error.code))
            } else {
                reply(call)
            }
        case .startNotify(let index): finishStartNotify(call, key, index)
        case .acquireNotify(let index): finishAcquireNotify(call, key, index)
        }
    }

    private func needsEncryption(_ request: GATTRequest) -> Bool {
        let characteristic = peripherals[request.key.peripheral].characteristics[request.kind.characteristic]
        return characteristic.spec.isEncrypted && devices[request.key]?.isEncrypted == false
    }

    /// Answers a read, which also signals `Value`.
    private mutating func finishRead(_ call: MethodCall, _ key: DeviceKey, _ index: Int, _ offset: Int) {
        switch peripherals[key.peripheral].read(index, offset: offset) {
        case .success(let value):
            devices[key]?.gatt?.characteristics[index]?.value = value
            effects.changed(call.path, InterfaceName.characteristic, [Property("Value", .bytes(value))])
            reply(call, .bytes(value))
        case .failure(let error): fail(call, .att(error.code))
        }
    }

    private mutating func finishReadDescriptor(
        _ call: MethodCall,
        _ key: DeviceKey,
        _ index: Int,
        _ place: Int,
        _ offset: Int
    ) {
        let characteristic = peripherals[key.peripheral].characteristics[index]
        let spec = characteristic.spec.allDescriptors[place]
        let isSubscribed = spec.uuid == .clientConfiguration && characteristic.isSubscribed
        // Client Characteristic Configuration: bit 0 is notify, bit 1 is indicate.
        let bit: UInt8 = characteristic.spec.properties.contains(.notify) ? 1 : 2
        let stored = isSubscribed ? [bit, 0] : spec.value
        guard offset <= stored.count else { return fail(call, .att(0x07)) }
        let value = Array(stored.dropFirst(offset))
        devices[key]?.gatt?.characteristics[index]?.descriptors[place].value = value
        effects.changed(call.path, InterfaceName.descriptor, [Property("Value", .bytes(value))])
        reply(call, .bytes(value))
    }

    /// Writes a value to the peripheral, which may notify it to all subscribers.
    @discardableResult
    private mutating func write(_ value: [UInt8], offset: Int, _ key: DeviceKey, _ index: Int) -> ATTError? {
        let spec = peripherals[key.peripheral].spec
        let uuid = peripherals[key.peripheral].characteristics[index].spec.uuid
        do throws(ATTError) {
            let echo = try peripherals[key.peripheral].write(index, value, offset: offset)
            effects.record(.write(spec.address, uuid, value, error: nil))
            if let echo { notify(key.peripheral, index, echo) }
            return nil
        } catch {
            effects.record(.write(spec.address, uuid, value, error: error.code))
            return error
        }
    }
}
