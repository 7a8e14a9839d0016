/// Execution of ordered changes of the simulation.
final class CommandPerformer {
    private let world: World
    private let components: BlueZComponents

    init(_ world: World, _ components: BlueZComponents) {
        self.world = world
        self.components = components
    }

    func perform(_ command: ControlCommand) {
        switch command {
        case .drop(let index): components.links.drop(index)
        case .keepLink(let index): world.air.peripherals[index].survivesCrash = true
        case .vanish(let index): vanish(index)
        case .appear(let index): appear(index)
        case .silence(let index, let silence): world.air.peripherals[index].silence = silence
        case .failDevice(let index, let method, let fault, let times):
            world.air.peripherals[index].faults.add(fault, of: method, times: times)
        case .failAdapter(let index, let method, let fault, let times):
            world.adapters[index].faults.add(fault, of: method, times: times)
        case .setPower(let index, let isOn):
            if world.adapters[index].isPresent { components.adapters.setPower(index, isOn) }
        case .unplug(let index): components.adapters.unplug(index)
        case .plug(let index): components.adapters.plug(index, isDaemonRunning: components.daemon.isRunning)
        case .restartDaemon(let isGraceful, let downtime):
            components.daemon.stop(isGraceful: isGraceful, for: downtime)
        case .notify(let index, let characteristic, let payload):
            components.notifications.send(index, characteristic, payload)
        case .setRate(let index, let rate): setRate(index, rate)
        case .changeServices(let index, let hidden):
            world.air.peripherals[index].changeServices(hiding: hidden)
            indicateServiceChanged(index)
        case .hideServices(let index, let hidden):
            world.air.peripherals[index].hideServices(hidden)
            indicateServiceChanged(index)
        case .forget(let index): world.air.peripherals[index].bonds.removeAll()
        case .slow(let index, let slowness): world.air.peripherals[index].slowness = slowness
        case .refuse(let index, let times): world.air.peripherals[index].connectFailures = times
        case .burst(let index, let count): components.notifications.burst(index, count)
        case .advertise(let index, let isOn): advertise(index, isOn)
        case .setClock(let index, let error):
            world.air.peripherals[index].records?.setClock(error: error, at: world.clock.now)
        case .resetRecords(let index): world.air.peripherals[index].records?.reset(at: world.clock.now)
        case .hang(let index, let isHung): components.adapters.setHung(index, isHung)
        }
    }

    /// Puts a peripheral out of range.
    ///
    /// The link ends after the supervision timeout.
    private func vanish(_ index: Int) {
        world.air.peripherals[index].isPresent = false
        world.air.stopAdvertising(index)
        if let key = world.air.peripherals[index].link { components.range.endContact(key) }
    }

    /// Puts a peripheral back in range.
    ///
    /// A link that has not timed out continues.
    private func appear(_ index: Int) {
        guard !world.air.peripherals[index].isPresent else { return }
        world.air.peripherals[index].isPresent = true
        if let key = world.air.peripherals[index].link {
            components.range.startContact(key)
        } else {
            world.air.startAdvertising(index)
        }
    }

    private func advertise(_ index: Int, _ isOn: Bool) {
        world.air.peripherals[index].isAdvertisingEnabled = isOn
        world.air.startAdvertising(index)
    }

    private func setRate(_ index: Int, _ rate: Double) {
        for place in world.air.peripherals[index].characteristics.indices
        where world.air.peripherals[index].characteristics[place].spec.source != .stored {
            world.air.peripherals[index].characteristics[place].rate = rate
        }
        restartNotifications(index)
    }

    /// Starts the notifications of a peripheral again, if it has a resolved link.
    private func restartNotifications(_ index: Int) {
        if let key = world.air.peripherals[index].link { components.range.restartNotifications(key) }
    }

    /// Indicates Service Changed on the current link.
    ///
    /// Without a link, the next connection discovers the services.
    private func indicateServiceChanged(_ index: Int) {
        guard let key = world.air.peripherals[index].link, let device = world.devices[key] else { return }
        let timer = SimulationTimer.rediscover(key, linkEpoch: device.linkEpoch)
        world.clock.schedule(timer, after: world.air.peripherals[index].spec.resolveLatency)
    }
}
