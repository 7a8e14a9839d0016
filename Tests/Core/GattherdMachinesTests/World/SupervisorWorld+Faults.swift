import GattherdGATT
import GattherdModel

@testable import GattherdMachines

// Faults and user actions.
extension SupervisorWorld {
    mutating func hold(_ name: String) {
        held.insert(name)
        send(.link(device: name, .hold))
    }

    mutating func release(_ name: String) {
        held.remove(name)
        forgiven.insert(name)
        send(.link(device: name, .release))
    }

    mutating func dismiss(_ name: String) {
        dismissed.insert(name)
        send(.dismissed(device: name))
    }

    /// Enrols the device again once it has left; no earlier state is kept.
    mutating func enrol(_ name: String) {
        dismissed.remove(name)
        guard left.remove(name) != nil else { return }
        forgiven.insert(name)
        send(.enrolled(device: name, pinned: nil, isHeld: held.contains(name)))
        for address in addresses where peripherals[name]?.objects[address] != nil { reportSighting(name, address) }
    }

    /// Moves the peripheral out of range: its link is lost, and no adapter hears it.
    mutating func vanish(_ name: String) {
        peripherals[name]?.isInRange = false
        drop(name)
    }

    mutating func appear(_ name: String) {
        peripherals[name]?.isInRange = true
    }

    /// Kills bluetoothd and its state; connected peripherals are known again after its start.
    mutating func killDaemon() {
        guard isDaemonUp else { return }
        isDaemonUp = false
        toldPowered = []
        for name in names {
            let link = peripherals[name]?.link
            peripherals[name]?.link = nil
            peripherals[name]?.objects = link.map { [$0: now] } ?? [:]
            guard let link else { continue }
            peripherals[name]?.ghost = link
            let number = peripherals[name]?.linkNumber
            after(.milliseconds(2250)) { world in
                if world.peripherals[name]?.linkNumber == number { world.dropGhost(name) }
            }
        }
        for address in addresses {
            adapters[address]?.isScanning = false
            adapters[address]?.otherLinks = 0
        }
        breakAttempts(on: nil, LinkFault(.daemonLost, "left the bus"))
        send(.unavailable(detail: "left the bus"))
    }

    /// Drops an unused link, as the kernel does.
    private mutating func dropGhost(_ name: String) {
        guard let address = peripherals[name]?.ghost, peripherals[name]?.outlivesCrash == false else { return }
        peripherals[name]?.ghost = nil
        guard isUsable(address), peripherals[name]?.objects[address] != nil else { return }
        send(.dropped(device: name, on: address))
        reportSighting(name, address)
    }

    mutating func restartDaemon() {
        guard !isDaemonUp else { return }
        reportEverything()
    }

    /// Unplugs the adapter: signals for each device, then for the adapter.
    mutating func unplug(_ address: BluetoothAddress) {
        guard adapters[address]?.isPresent == true else { return }
        breakAttempts(on: address, LinkFault(.adapterPoweredOff, "gone"))
        for name in names {
            if peripherals[name]?.link == address { drop(name) }
            remove(name, from: address)
        }
        adapters[address]?.isPresent = false
        adapters[address]?.isScanning = false
        adapters[address]?.otherLinks = 0
        cycling.remove(address)
        toldPowered.remove(address)
        if isDaemonUp { send(.adapterRemoved(address)) }
    }

    mutating func plug(_ address: BluetoothAddress) {
        guard adapters[address]?.isPresent == false else { return }
        adapters[address]?.isPresent = true
        adapters[address]?.isPowered = true
        reportAdapter(address)
    }

    /// Connects the device as another program would.
    mutating func connectByOther(_ name: String) {
        guard isUsable(adapter), let peripheral = peripherals[name], peripheral.isInRange, peripheral.link == nil,
            peripheral.objects[adapter] != nil, attempts[name] == nil
        else { return }
        let adapter = adapter
        peripherals[name]?.link = adapter
        reportSighting(name, adapter)
    }

    mutating func setOtherLinks(_ count: Int, on address: BluetoothAddress) {
        guard isUsable(address) else { return }
        adapters[address]?.otherLinks = count
        send(.otherLinks(address, count))
    }

    /// Ends all faults.
    mutating func heal() {
        failureRate = 0
        for address in addresses {
            adapters[address]?.hearsNothing = false
            adapters[address]?.refusesScans = false
            adapters[address]?.ailment = nil
            adapters[address]?.cure = nil
            adapters[address]?.slots = nil
            plug(address)
            if !cycling.contains(address) { setPowered(address, true) }
        }
        for name in names {
            peripherals[name]?.isInRange = true
            peripherals[name]?.fault = nil
            if sessions[name] == nil { drop(name) }
        }
        restartDaemon()
    }
}
