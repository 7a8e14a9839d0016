import GattherdDBus
import GattherdGATT

/// An ordered change of the simulation.
///
/// Numbers are indices into the adapters and peripherals of ``VirtualBlueZ``.
enum ControlCommand: Hashable, Sendable {
    /// Ends the link from the peripheral's side.
    case drop(Int)
    /// Keeps the link over the next crash of bluetoothd.
    case keepLink(Int)
    /// Puts the peripheral out of range.
    case vanish(Int)
    case appear(Int)
    case silence(Int, SimulatorOrder.Silence)
    case failDevice(Int, method: String, FaultList.Fault, times: Int)
    case failAdapter(Int, method: String, FaultList.Fault, times: Int)
    case setPower(adapter: Int, Bool)
    case unplug(adapter: Int)
    case plug(adapter: Int)
    case restartDaemon(isGraceful: Bool, downtime: Duration)
    case notify(Int, characteristic: Int, [UInt8])
    /// Sets the notifications per second of each characteristic with generated values.
    case setRate(Int, Double)
    case changeServices(Int, hiding: Set<BluetoothUUID>)
    case hideServices(Int, Set<BluetoothUUID>)
    /// Removes the peripheral's keys of all bonds.
    case forget(Int)
    /// Sets the peripheral's minimum latency of each response.
    case slow(Int, Duration)
    /// Ends the next links right after they are made.
    case refuse(Int, times: Int)
    /// Sends this number of notifications at once.
    case burst(Int, Int)
    case advertise(Int, Bool)
    /// Hangs the controller, or lets it answer again.
    case hang(adapter: Int, Bool)
}

extension VirtualBlueZ {
    mutating func perform(_ command: ControlCommand) {
        switch command {
        case .drop(let index): drop(index)
        case .keepLink(let index): peripherals[index].survivesCrash = true
        case .vanish(let index): vanish(index)
        case .appear(let index): appear(index)
        case .silence(let index, let silence): peripherals[index].silence = silence
        case .failDevice(let index, let method, let fault, let times):
            peripherals[index].faults.add(fault, of: method, times: times)
        case .failAdapter(let index, let method, let fault, let times):
            adapters[index].faults.add(fault, of: method, times: times)
        case .setPower(let index, let isOn): if adapters[index].isPresent { setPower(index, isOn) }
        case .unplug(let index): unplug(index)
        case .plug(let index): plug(index)
        case .restartDaemon(let isGraceful, let downtime): stopDaemon(isGraceful: isGraceful, for: downtime)
        case .notify(let index, let characteristic, let payload): notify(index, characteristic, payload)
        case .setRate(let index, let rate): setRate(index, rate)
        case .changeServices(let index, let hidden):
            peripherals[index].changeServices(hiding: hidden)
            indicateServiceChanged(index)
        case .hideServices(let index, let hidden):
            peripherals[index].hideServices(hidden)
            indicateServiceChanged(index)
        case .forget(let index): peripherals[index].bonds.removeAll()
        case .slow(let index, let slowness): peripherals[index].slowness = slowness
        case .refuse(let index, let times): peripherals[index].connectFailures = times
        case .burst(let index, let count): burst(index, count)
        case .advertise(let index, let isOn): advertise(index, isOn)
        case .hang(let index, let isHung): setHung(index, isHung)
        }
    }

    /// Puts a peripheral out of range.
    ///
    /// The link ends after the supervision timeout.
    private mutating func vanish(_ index: Int) {
        peripherals[index].isPresent = false
        peripherals[index].airEpoch += 1
        peripherals[index].rateEpoch += 1
        guard let key = peripherals[index].link, let device = devices[key] else { return }
        schedule(.loseContact(key, linkEpoch: device.linkEpoch), after: timing.supervisionTimeout)
    }

    mutating func loseContact(_ key: DeviceKey) {
        guard !peripherals[key.peripheral].isPresent, peripherals[key.peripheral].link == key else { return }
        guard !adapters[key.adapter].isHung else { return peripherals[key.peripheral].endLink() }
        linkDown(key, .timeout)
    }

    /// Puts a peripheral back in range.
    ///
    /// A link that has not timed out continues.
    private mutating func appear(_ index: Int) {
        guard !peripherals[index].isPresent else { return }
        peripherals[index].isPresent = true
        if let key = peripherals[index].link {
            if devices[key]?.isResolved == true { startNotifying(index) }
        } else {
            startAdvertising(index)
        }
    }

    private mutating func advertise(_ index: Int, _ isOn: Bool) {
        peripherals[index].isAdvertisingEnabled = isOn
        startAdvertising(index)
    }

    private mutating func setRate(_ index: Int, _ rate: Double) {
        for place in peripherals[index].characteristics.indices
        where peripherals[index].characteristics[place].spec.source != .stored {
            peripherals[index].characteristics[place].rate = rate
        }
        if let key = peripherals[index].link, devices[key]?.isResolved == true { startNotifying(index) }
    }

    /// Indicates Service Changed on the current link.
    ///
    /// Without a link, the next connection discovers the services.
    private mutating func indicateServiceChanged(_ index: Int) {
        guard let key = peripherals[index].link, let device = devices[key] else { return }
        schedule(.rediscover(key, linkEpoch: device.linkEpoch), after: peripherals[index].spec.resolveLatency)
    }
}
