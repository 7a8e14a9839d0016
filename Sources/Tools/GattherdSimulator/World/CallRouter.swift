import GattherdDBus

/// Dispatch of the method calls that bluetoothd receives.
final class CallRouter {
    private let world: World
    private let components: BlueZComponents
    private let properties: PropertyAccess

    init(_ world: World, _ components: BlueZComponents) {
        self.world = world
        self.components = components
        properties = PropertyAccess(world, components)
    }

    /// Answers a call, now or later.
    func answer(_ call: MethodCall) {
        guard !components.daemon.queue(call) else { return }
        if call.interface == InterfaceName.introspectable,
            let text = components.objects.introspection(of: call.path)
        {
            return world.effects.reply(call, .string(text))
        }
        guard let node = components.objects[call.path] else {
            return world.effects.fail(call, .unknown(call, object: true))
        }
        guard MethodTable.knows(call) else { return world.effects.fail(call, .unknown(call, object: false)) }
        switch orderedFault(for: call, node) {
        case .error(let error)?: world.effects.fail(call, error)
        case .noReply?: drop(call, node)
        case nil: answer(call, node)
        }
    }

    /// Leaves a call unanswered; an `AcquireNotify` has its effect as if the peripheral had refused it.
    private func drop(_ call: MethodCall, _ node: Node) {
        guard call.member == "AcquireNotify", case .characteristic(let key, let index) = node else { return }
        components.sockets.keepNotify(key, index)
    }

    /// The next ordered failure of a method.
    ///
    /// Failures of `Connect` are applied at the end of the attempt.
    private func orderedFault(for call: MethodCall, _ node: Node) -> FaultList.Fault? {
        switch node {
        case .adapter(let index): world.adapters[index].faults.removeNext(call.member)
        case .device(let key) where call.member != "Connect":
            world.air.peripherals[key.peripheral].faults.removeNext(call.member)
        case .characteristic(let key, _), .descriptor(let key, _, _):
            world.air.peripherals[key.peripheral].faults.removeNext(call.member)
        default: nil
        }
    }

    private func answer(_ call: MethodCall, _ node: Node) {
        switch (call.interface, node) {
        case (InterfaceName.properties, _): properties.answer(call, node)
        case (InterfaceName.objectManager, .root): world.effects.reply(call, components.objects.managedObjects)
        case (InterfaceName.agentManager, .bluez): answerAgentManager(call)
        case (InterfaceName.adapter, .adapter(let index)): answerAdapter(call, index)
        case (InterfaceName.device, .device(let key)): answerDevice(call, key)
        case (InterfaceName.characteristic, .characteristic(let key, let index)):
            answerCharacteristic(call, key, index)
        case (InterfaceName.descriptor, .descriptor(let key, let characteristic, let index)):
            answerDescriptor(call, key, characteristic, index)
        default: refuse(call)
        }
    }

    private func refuse(_ call: MethodCall) {
        world.effects.fail(call, .unknown(call, object: false))
    }

    private func answerAgentManager(_ call: MethodCall) {
        let path = call.arguments.first?.string ?? ""
        switch call.member {
        case "RegisterAgent": components.agents.register(call, path)
        case "UnregisterAgent": components.pairing.unregisterAgent(call, path)
        case "RequestDefaultAgent": components.agents.makeDefault(call, path)
        default: refuse(call)
        }
    }

    private func answerAdapter(_ call: MethodCall, _ index: Int) {
        switch call.member {
        case "StartDiscovery": components.discovery.start(call, index)
        case "StopDiscovery": components.discovery.stop(call, index)
        case "SetDiscoveryFilter": components.discovery.setFilter(call, index)
        case "GetDiscoveryFilters": world.effects.reply(call, .strings(SimulatedDiscoveryFilter.keys))
        case "RemoveDevice": removeDevice(call, index)
        default: refuse(call)
        }
    }

    private func removeDevice(_ call: MethodCall, _ index: Int) {
        guard let path = call.arguments.first?.string else { return world.effects.fail(call, .invalidArguments) }
        guard case .device(let key)? = components.objects[path], key.adapter == index else {
            return world.effects.fail(call, .doesNotExist)
        }
        components.links.remove(call, key)
    }

    private func answerDevice(_ call: MethodCall, _ key: DeviceKey) {
        switch call.member {
        case "Connect": components.links.connect(call, key)
        case "Disconnect": components.links.disconnect(call, key)
        case "Pair": if components.pairing.pair(call, key) { components.attempts.start(key, for: nil) }
        case "CancelPairing": cancelPairing(call, key)
        default: refuse(call)
        }
    }

    private func cancelPairing(_ call: MethodCall, _ key: DeviceKey) {
        guard components.pairing.isPairedByClient(key) else { return world.effects.fail(call, .doesNotExist) }
        components.pairing.withdraw(key)
        if world.devices[key]?.attempt?.call == nil { components.attempts.cancel(key) }
        world.effects.reply(call)
    }

    private func answerCharacteristic(_ call: MethodCall, _ key: DeviceKey, _ index: Int) {
        switch call.member {
        case "ReadValue": components.gatt.readValue(call, key, index)
        case "WriteValue": components.gatt.writeValue(call, key, index)
        case "StartNotify": components.gatt.startNotify(call, key, index)
        case "StopNotify": if components.gatt.stopNotify(call, key, index) { components.daemon.crash() }
        case "AcquireNotify": components.gatt.acquireNotify(call, key, index)
        case "AcquireWrite": components.sockets.acquireWrite(call, key, index)
        default: refuse(call)
        }
    }

    private func answerDescriptor(_ call: MethodCall, _ key: DeviceKey, _ characteristic: Int, _ index: Int) {
        switch call.member {
        case "ReadValue": components.gatt.readDescriptor(call, key, characteristic, index)
        case "WriteValue": world.effects.fail(call, .writeNotPermitted)
        default: refuse(call)
        }
    }
}
