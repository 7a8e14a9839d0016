import GattherdDBus

// Dispatch of method calls.
extension VirtualBlueZ {
    mutating func answer(_ call: MethodCall) {
        guard !daemon.isStarting else { return daemon.queue(call) }
        if call.interface == InterfaceName.introspectable, let text = introspection(of: call.path) {
            return reply(call, .string(text))
        }
        guard let node = objects[call.path] else { return fail(call, .unknown(call, object: true)) }
        guard MethodTable.knows(call) else { return fail(call, .unknown(call, object: false)) }
        if let fault = orderedFault(for: call, node) {
            if case .error(let error) = fault { fail(call, error) }
            return
        }
        switch (call.interface, node) {
        case (InterfaceName.properties, _): answerProperties(call, node)
        case (InterfaceName.objectManager, .root): reply(call, managedObjects)
        case (InterfaceName.agentManager, .bluez): answerAgentManager(call)
        case (InterfaceName.adapter, .adapter(let index)): answerAdapter(call, index)
        case (InterfaceName.device, .device(let key)): answerDevice(call, key)
        case (InterfaceName.characteristic, .characteristic(let key, let index)):
            answerCharacteristic(call, key, index)
        case (InterfaceName.descriptor, .descriptor(let key, let characteristic, let index)):
            answerDescriptor(call, key, characteristic, index)
        default: fail(call, .unknown(call, object: false))
        }
    }

    /// The next ordered failure of a method.
    ///
    /// Failures of `Connect` are applied at the end of the attempt.
    private mutating func orderedFault(for call: MethodCall, _ node: Node) -> FaultList.Fault? {
        switch node {
        case .adapter(let index): adapters[index].faults.removeNext(call.member)
        case .device(let key) where call.member != "Connect":
            peripherals[key.peripheral].faults.removeNext(call.member)
        case .characteristic(let key, _), .descriptor(let key, _, _):
            peripherals[key.peripheral].faults.removeNext(call.member)
        default: nil
        }
    }

    private mutating func answerAdapter(_ call: MethodCall, _ index: Int) {
        switch call.member {
        case "StartDiscovery": startDiscovery(call, index)
        case "StopDiscovery": stopDiscovery(call, index)
        case "SetDiscoveryFilter": setDiscoveryFilter(call, index)
        case "GetDiscoveryFilters": reply(call, .strings(SimulatedDiscoveryFilter.keys))
        case "RemoveDevice": removeDevice(call, index)
        default: fail(call, .unknown(call, object: false))
        }
    }

    private mutating func answerDevice(_ call: MethodCall, _ key: DeviceKey) {
        switch call.member {
        case "Connect": connect(call, key)
        case "Disconnect": disconnect(call, key)
        case "Pair": pair(call, key)
        case "CancelPairing": cancelPairing(call, key)
        default: fail(call, .unknown(call, object: false))
        }
    }

    private mutating func answerCharacteristic(_ call: MethodCall, _ key: DeviceKey, _ index: Int) {
        switch call.member {
        case "ReadValue": readValue(call, key, index)
        case "WriteValue": writeValue(call, key, index)
        case "StartNotify": startNotify(call, key, index)
        case "StopNotify": stopNotify(call, key, index)
        case "AcquireNotify": acquireNotify(call, key, index)
        case "AcquireWrite": acquireWrite(call, key, index)
        default: fail(call, .unknown(call, object: false))
        }
    }

    private mutating func answerDescriptor(_ call: MethodCall, _ key: DeviceKey, _ characteristic: Int, _ index: Int) {
        switch call.member {
        case "ReadValue": readDescriptor(call, key, characteristic, index)
        case "WriteValue": fail(call, .writeNotPermitted)
        default: fail(call, .unknown(call, object: false))
        }
    }

    /// Removes the state of a client that left the bus.
    mutating func removeClient(_ client: String) {
        if agents[client] != nil { agentLeft(client) }
        recordOrphans(of: client)
        daemon.removeCalls(from: client)
        for index in adapters.indices {
            adapters[index].discovery.setFilter(nil, of: client)
            if adapters[index].discovery.contains(client) { endDiscovery(of: client, index) }
        }
        for request in requests.removeAll(from: client) { releaseAcquisition(request) }
        for key in devices.keys { endNotifySessions(of: client, key) }
    }
}

// MARK: - org.freedesktop.DBus.Properties

extension VirtualBlueZ {
    private mutating func answerProperties(_ call: MethodCall, _ node: Node) {
        let texts = call.arguments.map { $0.string ?? "" }
        guard let interface = interfaces(of: node).first(where: { $0.name == texts.first }) else {
            return fail(call, .noSuchInterface(texts.first ?? ""))
        }
        guard call.member != "GetAll" else { return reply(call, .properties(interface.properties)) }
        let property = interface.properties.first { $0.name == texts[1] }
        if call.member == "Set" {
            set(call, node, texts[1], from: property?.value, to: call.arguments[2].unwrapped)
        } else if let property {
            reply(call, .variant(property.value))
        } else {
            fail(call, .noSuchProperty(texts[1]))
        }
    }

    private mutating func set(
        _ call: MethodCall,
        _ node: Node,
        _ name: String,
        from old: DBusValue?,
        to new: DBusValue
    ) {
        guard let old else { return fail(call, .unknownProperty(name)) }
        guard Self.isWritable(node, name) else { return fail(call, .readOnly(name)) }
        guard old.signature == new.signature else { return fail(call, .invalidSignature(name)) }
        switch node {
        case .adapter(let index): setAdapter(index, Property(name, new), isNew: old != new)
        case .device(let key): setDevice(key, Property(name, new), isNew: old != new)
        default: break
        }
        reply(call)
    }

    private static func isWritable(_ node: Node, _ name: String) -> Bool {
        switch node {
        case .adapter:
            ["Powered", "Discoverable", "DiscoverableTimeout", "Pairable", "PairableTimeout", "Alias"].contains(name)
        case .device: ["Trusted", "Blocked", "Alias"].contains(name)
        default: false
        }
    }

    private mutating func setAdapter(_ index: Int, _ property: Property, isNew: Bool) {
        switch (property.name, property.value) {
        case ("Powered", .boolean(let isOn)): return setPower(index, isOn)
        case ("Pairable", .boolean(let isPairable)): adapters[index].isPairable = isPairable
        case ("Alias", .string(let alias)): adapters[index].alias = alias.isEmpty ? nil : alias
        default: return
        }
        if isNew { effects.changed(adapters[index].path, InterfaceName.adapter, [property]) }
    }

    private mutating func setDevice(_ key: DeviceKey, _ property: Property, isNew: Bool) {
        guard isNew else { return }
        effects.changed(devicePath(key), InterfaceName.device, [property])
        switch (property.name, property.value) {
        case ("Trusted", .boolean(let isTrusted)):
            devices[key]?.isTrusted = isTrusted
            armExpiry(key)
        case ("Blocked", .boolean(let isBlocked)):
            devices[key]?.isBlocked = isBlocked
            if isBlocked { linkDown(key, .blocked) } else { continueAttempt(key) }
        case ("Alias", .string(let alias)): devices[key]?.alias = alias.isEmpty ? nil : alias
        default: break
        }
    }
}
