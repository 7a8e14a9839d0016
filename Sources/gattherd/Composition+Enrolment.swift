import GattherdBluetooth
import GattherdConfig
import GattherdDaemon
import GattherdGATT
import GattherdHistory
import GattherdLog
import GattherdModel
import GattherdProfiles
import GattherdSync

/// What is known of the devices that rules have made.
struct EnrolledHerd: Sendable {
    var silences: Silences
    /// What history has; `nil` while it could not be read yet: until then nobody must be taken for gone.
    var remembered: [EnrolledDevice]?

    init(_ records: [EnrolledDevice]?, now: SuspendingClock.Instant) {
        remembered = records
        silences = Silences(records ?? [], now: now)
    }

    var isRecallDue: Bool { remembered == nil }
}

// The devices of a running daemon change: by a reload, by a rule that wants a peripheral, by nobody having heard of one.
extension Composition {
    /// Carries out what changes, one thing after the other.
    func follow(_ file: ConfigurationFile) async {
        seek()
        async let _ = remind()
        for await _ in changes.wakes {
            let due = changes.take()
            if due.isReload {
                let outcome = await reload(file)
                for waiter in due.reloadWaiters {
                    if let outcome { waiter.yield(outcome) }
                    waiter.finish()
                }
            }
            if enrolled.withLock(\.isRecallDue) { await recall() }
            await enrol(due.peripherals.values.sorted { $0.id.address < $1.id.address })
            if due.isLook { await look() }
        }
    }

    /// Has the herd show whom a rule may want; anew after each reload.
    func seek() {
        let enrolment = Enrolment(configuration.enrol, registry)
        let changes = changes
        guard !enrolment.rules.isEmpty else { return gateway.herd.seek(nil) }
        gateway.herd.seek { enrolment.device(for: $0) != nil && changes.offer($0) }
    }

    /// Goes on with other devices, or with other profiles.
    func take(_ next: Configuration, _ registry: ProfileRegistry, _ devices: [HerdDevice]) async {
        set(next, registry, devices)
        tellDelivery(next, registry)
        await gateway.herd.reload(devices: devices, profiles: registry.profiles)
        await remember()
    }

    // MARK: - Who comes

    /// The rules may be others now than when the peripherals were shown.
    private func enrol(_ peripherals: [PeripheralStatus]) async {
        let enrolment = Enrolment(configuration.enrol, registry)
        var next = configuration
        var records: [DeviceRecord] = []
        for peripheral in peripherals {
            guard let device = enrolment.device(for: peripheral), next.hasRoom(for: device) else { continue }
            let (name, address) = (device.name.value, device.address.value.description)
            guard next.devices.count(where: { $0.rule != nil }) < Enrolment.limit else {
                tellOfLimit(name)
                continue
            }
            next.devices.append(device)
            enrolled.withLock { $0.silences.begin(name) }
            records.append(DeviceRecord(device: name, address: address, name: peripheral.name))
        }
        guard !records.isEmpty else { return }
        for record in records { await note(record) }
        await take(next, adding: next.devices.suffix(records.count))
    }

    private func take(_ next: Configuration, adding devices: some Sequence<DeviceSettings>) async {
        await take(next, registry, herdDevices + devices.map { HerdDevice($0, registry) })
    }

    private func tellOfLimit(_ name: String) {
        let advice = "rules have made \(Enrolment.limit) devices, and make no more; ask for more in their match"
        log(.warning, "this becomes no device", [.init("device", name), .init("advice", advice)])
    }

    private func note(_ record: DeviceRecord) async {
        do throws(StoreFault) {
            try await history.note(record, seenAt: SystemClock.now)
        } catch {
            log(.warning, "the device could not be noted in history", [.init("history.error", error.detail)])
        }
    }

    // MARK: - Who was there

    /// What earlier runs have made, where history could not say at the start.
    private func recall() async {
        guard let records = try? await history.enrolledDevices() else { return }
        enrolled.withLock { $0 = EnrolledHerd(records, now: .now) }
        let before = configuration
        let next = before.recalling(records)
        await take(next, adding: next.devices.dropFirst(before.devices.count))
    }

    /// So that a restart knows them.
    private func remember() async {
        let records = enrolled.withLock { enrolled in
            let records = configuration.enrolledDevices(enrolled.silences)
            return enrolled.isRecallDue || enrolled.remembered == records ? nil : records
        }
        guard let records else { return }
        do throws(StoreFault) {
            try await history.setEnrolled(records)
            enrolled.withLock { $0.remembered = records }
        } catch {
            log(.warning, "which devices rules have made cannot be remembered", [.init("history.error", error.detail)])
        }
    }

    // MARK: - Who goes

    /// Twice as often as the shortest memory of a rule asks for, within a second and a quarter of an hour.
    private func remind() async {
        while true {
            let shortest = configuration.enrol.compactMap(\.forgetAfter.duration).min() ?? .seconds(1800)
            let rhythm = min(max(shortest / 2, .seconds(1)), .seconds(900))
            let pause = enrolled.withLock(\.isRecallDue) ? .seconds(10) : rhythm
            guard (try? await Task.sleep(for: pause, clock: .loop)) != nil else { return }
            changes.look()
        }
    }

    /// Lets go of those whom nobody has heard of for as long as their rule says.
    private func look() async {
        var next = configuration
        guard next.devices.contains(where: { $0.rule != nil }) else { return }
        let board = gateway.herd.board
        let looks = herdDevices.map { device in
            let status = board.status(of: device.name)
            let heard = device.listening == nil ? board.lastSighting(of: device.name)?.time : status?.since
            return Silences.Look(device: device.name, isHere: status?.state == .ready, heard: heard)
        }
        let isListening = board.adapters.contains(where: \.isPowered)
        let silences = enrolled.withLock { enrolled in
            enrolled.silences.note(looks, isListening: isListening, now: .now)
            return enrolled.silences
        }
        let rules = Dictionary(next.enrol.map { ($0.identity, $0) }) { first, _ in first }
        next.devices.removeAll { device in
            guard let memory = device.rule.flatMap({ rules[$0] })?.forgetAfter.duration else { return false }
            return silences[device.name.value] >= memory
        }
        let names = Set(next.devices.map(\.name.value))
        guard names.count < configuration.devices.count else { return await remember() }
        await take(next, registry, herdDevices.filter { names.contains($0.name) })
        // Who comes back is welcome.
        seek()
    }
}

extension Configuration {
    /// Nobody has the device's name or address.
    fileprivate func hasRoom(for device: DeviceSettings) -> Bool {
        !devices.contains { $0.name.value == device.name.value || $0.address.value == device.address.value }
    }

    fileprivate func enrolledDevices(_ silences: Silences) -> [EnrolledDevice] {
        devices.compactMap { EnrolledDevice($0, silence: silences[$0.name.value]) }.sorted { $0.device < $1.device }
    }
}
