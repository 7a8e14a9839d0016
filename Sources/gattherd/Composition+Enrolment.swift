import GattherdBluetooth
import GattherdConfig
import GattherdDaemon
import GattherdGATT
import GattherdHistory
import GattherdLog
import GattherdModel
import GattherdProfiles
import GattherdSync

// The devices of a running daemon change: by a reload, by a rule that wants a peripheral, by nobody having heard of one.
extension Composition {
    enum Change: Sendable {
        case reload
        case enrol(DeviceSettings, peripheralName: String?)
        /// Let go of those that a rule made and nobody has heard of for long.
        case forget
    }

    /// Carries out what changes, one thing after the other.
    func follow(_ file: ConfigurationFile) async {
        seek()
        async let _ = remind()
        for await change in changes {
            switch change {
            case .reload: await reload(file)
            case .enrol(let device, let name): await enrol(device, called: name)
            case .forget: await forget()
            }
        }
    }

    /// Has the herd show whom a rule may want; anew after each reload.
    func seek() {
        let enrolment = Enrolment(configuration.enrol, loaded.withLock { $0 })
        let change = change
        guard !enrolment.rules.isEmpty else { return gateway.herd.seek(nil) }
        gateway.herd.seek { peripheral in
            guard let device = enrolment.device(for: peripheral) else { return false }
            change.yield(.enrol(device, peripheralName: peripheral.name))
            return true
        }
    }

    /// Goes on with other devices, or with other profiles.
    func take(_ next: Configuration, _ registry: ProfileRegistry, _ devices: [HerdDevice]) async {
        set(next, registry)
        tellDelivery(next, registry)
        await gateway.herd.reload(devices: devices, profiles: registry.profiles)
    }

    private func take(_ next: Configuration) async {
        let registry = loaded.withLock { $0 }
        let devices = await NamedThread.result(name: "devices") { next.devices.map { HerdDevice($0, registry) } }
        if let devices { await take(next, registry, devices) }
    }

    /// As often as the shortest memory of a rule asks for, within a second and an hour.
    private func remind() async {
        while true {
            let memories = configuration.enrol.compactMap(\.forgetAfter.duration)
            let pause = min(max(memories.min() ?? .seconds(3600), .seconds(1)), .seconds(3600))
            guard (try? await Task.sleep(for: pause, clock: .loop)) != nil else { return }
            change.yield(.forget)
        }
    }

    private func enrol(_ device: DeviceSettings, called peripheralName: String?) async {
        var next = configuration
        let (name, address) = (device.name.value, device.address.value)
        guard !next.devices.contains(where: { $0.name.value == name || $0.address.value == address }) else { return }
        guard next.devices.count(where: \.isEnrolled) < Enrolment.limit else {
            let advice = "rules have made \(Enrolment.limit) devices, and make no more; ask for more in their match"
            return log(.warning, "this becomes no device", [.init("device", name), .init("advice", advice)])
        }
        next.devices.append(device)
        // First of all, so that a restart knows it again.
        do throws(StoreFault) {
            let record = DeviceRecord(device: name, address: address.description, name: peripheralName)
            try await history.note(record, seenAt: SystemClock.now)
        } catch {
            log(.warning, "the device could not be noted in history", [.init("history.error", error.detail)])
        }
        await take(next)
    }

    private func forget() async {
        let now = SystemClock.now
        var next = configuration
        guard next.devices.contains(where: \.isEnrolled) else { return }
        let path = next.history.path.value
        let sightings = await NamedThread.result(name: "sightings") { try? HistoryReader(path: path).sightings() }
        // What history cannot say for now is no reason to let anybody go.
        guard let sightings = sightings ?? nil else { return }
        let times = Dictionary(sightings.map { ($0.device, $0.time) }) { first, _ in first }
        let rules = next.enrol
        next.devices.removeAll { device in
            guard device.isEnrolled, !isHere(device) else { return false }
            let name = device.name.value
            let heard = gateway.herd.board.lastSighting(of: name)?.time
            guard let time = [heard, times[name]].compactMap(\.self).max() else { return false }
            return rules.recalled([DeviceSighting(device, at: time)], beside: [], now: now).isEmpty
        }
        guard next != configuration else { return }
        await take(next)
        // Who comes back is welcome.
        seek()
    }

    private func isHere(_ device: DeviceSettings) -> Bool {
        gateway.herd.board.status(of: device.name.value)?.state == .ready
    }
}
