import GattherdDBus
import GattherdGATT

/// A request that a peripheral has not answered yet.
struct Operation: Hashable, Sendable {
    enum Kind: Hashable, Sendable {
        case read(Int, offset: Int)
        case write(Int, [UInt8], offset: Int)
        case startNotify(Int)
        case acquireNotify(Int)
        case readDescriptor(Int, place: Int, offset: Int)

        var characteristic: Int {
            switch self {
            case .read(let index, _), .write(let index, _, _), .startNotify(let index), .acquireNotify(let index),
                .readDescriptor(let index, _, _):
                index
            }
        }
    }

    let key: DeviceKey
    let call: MethodCall
    let kind: Kind
    /// True while it waits for encryption.
    var isHeld = false
}

// Reading and writing.
extension VirtualBlueZ {
    mutating func readValue(_ call: MethodCall, _ key: DeviceKey, _ index: Int) {
        guard let offset = offset(call.arguments.first) else { return fail(call, .invalidArguments) }
        begin(.read(index, offset: offset), call, key)
    }

    mutating func readDescriptor(_ call: MethodCall, _ key: DeviceKey, _ characteristic: Int, _ place: Int) {
        guard let offset = offset(call.arguments.first) else { return fail(call, .invalidArguments) }
        begin(.readDescriptor(characteristic, place: place, offset: offset), call, key)
    }

    /// The option `offset`; `nil` when it is not a `q`.
    private func offset(_ options: DBusValue?) -> Int? {
        guard let value = options?["offset"] else { return 0 }
        guard case .uint16(let offset) = value else { return nil }
        return Int(offset)
    }

    /// A command is answered when it is sent; a request when the peripheral has answered.
    mutating func writeValue(_ call: MethodCall, _ key: DeviceKey, _ index: Int) {
        guard let value = call.arguments.first?.octets else { return fail(call, .invalidArguments) }
        guard devices[key]?.isConnected == true else { return fail(call, .notConnected) }
        guard devices[key]?.gatt?.characteristics[index]?.writes == nil else { return fail(call, .writeAcquired) }
        guard value.count <= 512 else { return fail(call, .invalidLength) }
        let options = call.arguments.count > 1 ? call.arguments[1] : nil
        guard let offset = offset(options) else { return fail(call, .invalidArguments) }
        let properties = peripherals[key.peripheral].characteristics[index].spec.properties
        let type = options?["type"]?.string ?? (properties.contains(.write) ? "request" : "command")
        if type == "command", options?["type"] != nil || properties.contains(.writeWithoutResponse) {
            reply(call)
            command(value, offset: offset, key, index)
        } else if type == "command" || !properties.contains(.write) {
            fail(call, .notSupported)
        } else {
            begin(.write(index, value, offset: offset), call, key)
        }
    }

    /// Hands a value to the peripheral, which answers nothing, and takes nothing that needs encryption.
    mutating func command(_ value: [UInt8], offset: Int = 0, _ key: DeviceKey, _ index: Int) {
        let characteristic = peripherals[key.peripheral].characteristics[index]
        guard !characteristic.spec.isEncrypted || devices[key]?.isEncrypted == true else { return }
        write(value, offset: offset, key, index)
    }

    /// Asks the peripheral; its answer takes a while, or does not come.
    mutating func begin(_ kind: Operation.Kind, _ call: MethodCall, _ key: DeviceKey) {
        guard devices[key]?.isConnected == true else { return fail(call, .notConnected) }
        let id = makeID()
        operations[id] = Operation(key: key, call: call, kind: kind)
        if !isReachable(key) {
            schedule(.timeOut(id), after: timing.attTimeout)
        } else {
            schedule(.finish(id), after: peripherals[key.peripheral].attLatency)
        }
    }

    /// No answer came: the request fails and bluetoothd closes the link.
    mutating func timeOut(_ id: UInt64) {
        guard let operation = operations.removeValue(forKey: id), let device = devices[operation.key] else { return }
        abandonAcquisition(operation)
        fail(operation.call, .att(0x0E))
        schedule(.linkDown(operation.key, linkEpoch: device.linkEpoch, .unanswered), after: .seconds(2))
    }

    mutating func finish(_ id: UInt64) {
        guard let operation = operations.removeValue(forKey: id) else { return }
        let (key, call) = (operation.key, operation.call)
        guard isReachable(key) else {
            operations[id] = operation
            return schedule(.timeOut(id), after: timing.attTimeout)
        }
        guard !needsEncryption(operation) else { return hold(id, operation) }
        switch operation.kind {
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

    /// A client that left waits for nothing.
    mutating func abandon(_ id: UInt64, _ operation: Operation) {
        operations[id] = nil
        abandonAcquisition(operation)
    }

    private func needsEncryption(_ operation: Operation) -> Bool {
        let characteristic = peripherals[operation.key.peripheral].characteristics[operation.kind.characteristic]
        return characteristic.spec.isEncrypted && devices[operation.key]?.isEncrypted == false
    }

    /// Every read shows as a change of `Value`, too.
    private mutating func finishRead(_ call: MethodCall, _ key: DeviceKey, _ index: Int, _ offset: Int) {
        switch peripherals[key.peripheral].read(index, offset: offset) {
        case .success(let value):
            devices[key]?.gatt?.characteristics[index]?.value = value
            changed(call.path, InterfaceName.characteristic, Property("Value", .bytes(value)))
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
        let bit: UInt8 = characteristic.spec.properties.contains(.notify) ? 1 : 2
        let whole = isSubscribed ? [bit, 0] : spec.value
        guard offset <= whole.count else { return fail(call, .att(0x07)) }
        let value = Array(whole.dropFirst(offset))
        devices[key]?.gatt?.characteristics[index]?.descriptors[place].value = value
        changed(call.path, InterfaceName.descriptor, Property("Value", .bytes(value)))
        reply(call, .bytes(value))
    }

    /// Hands a value to the peripheral, which may notify it, also to the one who wrote it.
    @discardableResult
    private mutating func write(_ value: [UInt8], offset: Int, _ key: DeviceKey, _ index: Int) -> ATTError? {
        let spec = peripherals[key.peripheral].spec
        let uuid = peripherals[key.peripheral].characteristics[index].spec.uuid
        do throws(ATTError) {
            let echo = try peripherals[key.peripheral].write(index, value, offset: offset)
            effects.append(.record(.write(spec.address, uuid, value, error: nil)))
            if let echo { notify(key.peripheral, index, echo) }
            return nil
        } catch {
            effects.append(.record(.write(spec.address, uuid, value, error: error.code)))
            return error
        }
    }
}
