import GattherdDBus

// Which call goes where.
extension VirtualBlueZ {
    mutating func answer(_ call: MethodCall) {
        guard !isStarting else { return early.append(call) }
        if call.interface == InterfaceName.introspectable, let text = introspection(of: call.path) {
            return reply(call, .string(text))
        }
        guard let node = nodes[call.path] else { return fail(call, .unknown(call, object: true)) }
        guard MethodTable.knows(call) else { return fail(call, .unknown(call, object: false)) }
        if let fault = takeFault(call, node) {
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

    /// A failure that was ordered; those of `Connect` come when the attempt ends.
    private mutating func takeFault(_ call: MethodCall, _ node: Node) -> FaultList.Fault? {
        switch node {
        case .adapter(let index): adapters[index].faults.take(call.member)
        case .device(let key) where call.member != "Connect": peripherals[key.peripheral].faults.take(call.member)
        case .characteristic(let key, _), .descriptor(let key, _, _):
            peripherals[key.peripheral].faults.take(call.member)
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

    /// Drops everything that belongs to a client's connection to the bus.
    mutating func forget(_ client: String) {
        if agents[client] != nil { forgetAgent(of: client) }
        noteOrphans(of: client)
        early.removeAll { $0.sender == client }
        for index in adapters.indices {
            adapters[index].filters[client] = nil
            if adapters[index].sessions.contains(client) { endSession(of: client, index) }
        }
        for (id, operation) in operations where operation.call.sender == client { abandon(id, operation) }
        for key in devices.keys { forgetSessions(of: client, key) }
    }
}
