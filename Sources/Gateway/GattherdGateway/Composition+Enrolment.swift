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
struct EnrolledDevices: Sendable {
    var silences: LastSeenTracker
    var newcomers: EnrolmentCandidates
    /// Peripherals had to wait, which are to be offered again.
    var hasWaiting = false
    /// Devices that were removed without having been ready; history forgets them the next time.
    var strangers: [String] = []
    /// What history has; `nil` while it could not be read yet: until then nobody must be taken for gone.
    var remembered: [EnrolledDevice]?

    init(_ records: [EnrolledDevice]?, now: SuspendingClock.Instant) {
        remembered = records
        silences = LastSeenTracker(records ?? [], now: now)
        newcomers = EnrolmentCandidates(records ?? [], now: now)
    }

    var isRecallDue: Bool { remembered == nil }
}

// The devices of a running daemon change: by a reload, by a rule that wants a peripheral, by nobody having heard of one.
extension Composition {
    /// Carries out what changes, one thing after the other.
    package func follow(_ file: ConfigurationFile) async {
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
    func take(_ next: Configuration, _ registry: ProfileRegistry, _ devices: [SupervisedDevice]) async {
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
        var waiting = 0
        for peripheral in peripherals {
            guard let device = enrolment.device(for: peripheral), next.hasRoom(for: device) else { continue }
            let isFull = next.devices.count(where: { $0.rule != nil }) >= Enrolment.limit
            let leaver = isFull ? longestSilent(in: next) : nil
            let admission = isFull && leaver == nil ? .full : admit(device)
            if admission == .full { waiting += 1 }
            guard admission == .admitted else { continue }
            if let leaver { next.devices.removeAll { $0.name.value == leaver } }
            let (name, address) = (device.name.value, device.address.value.description)
            next.devices.append(device)
            enrolled.withLock { $0.silences.begin(name) }
            records.append(DeviceRecord(device: name, address: address, name: peripheral.name))
        }
        if waiting > 0 { tellOfLimit(waiting) }
        guard !records.isEmpty else { return }
        for record in records { await note(record) }
        let stays = Set(next.devices.map(\.name.value))
        let new = next.devices.suffix(records.count).map { SupervisedDevice($0, registry) }
        await take(next, registry, herdDevices.filter { stays.contains($0.name) } + new)
    }

    private func admit(_ device: DeviceSettings) -> EnrolmentCandidates.Admission {
        enrolled.withLock { enrolled in
            enrolled.newcomers.admit(
                device.name.value,
                at: device.address.value.description,
                by: device.rule ?? "",
                now: .now
            )
        }
    }

    /// The device that may make room for another one; `nil` when all were heard lately.
    private func longestSilent(in configuration: Configuration) -> String? {
        let silences = enrolled.withLock(\.silences)
        let names = configuration.devices.filter { $0.rule != nil }.map(\.name.value)
        return names.max { silences[$0] < silences[$1] }.flatMap { silences[$0] >= Enrolment.patience ? $0 : nil }
    }

    private func take(_ next: Configuration, adding devices: some Sequence<DeviceSettings>) async {
        await take(next, registry, herdDevices + devices.map { SupervisedDevice($0, registry) })
    }

    private func tellOfLimit(_ count: Int) {
        enrolled.withLock { $0.hasWaiting = true }
        let advice = """
            rules make \(Enrolment.limit) devices at most, and \(EnrolmentCandidates.places) each that were never ready; \
            ask for more in their match
            """
        log(.warning, "peripherals do not become devices for now", [.init("count", count), .init("advice", advice)])
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
        enrolled.withLock { $0 = EnrolledDevices(records, now: .now) }
        let before = configuration
        let next = before.recalling(records)
        await take(next, adding: next.devices.dropFirst(before.devices.count))
    }

    /// So that a restart knows them.
    private func remember() async {
        let records = enrolled.withLock { enrolled in
            let records = configuration.enrolledDevices(enrolled)
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
            let isUrgent = enrolled.withLock { $0.isRecallDue || !$0.newcomers.isEmpty || $0.hasWaiting }
            let pause = isUrgent ? min(rhythm, .seconds(10)) : rhythm
            guard (try? await Task.sleep(for: pause, clock: .loop)) != nil else { return }
            changes.look()
        }
    }

    /// Lets go of those whom nobody has heard of for as long as their rule says.
    private func look() async {
        var next = configuration
        let isIdle = enrolled.withLock { $0.strangers.isEmpty && !$0.hasWaiting && !$0.newcomers.hasPauses }
        guard !isIdle || next.devices.contains(where: { $0.rule != nil }) else { return }
        let board = gateway.herd.board
        let looks = herdDevices.map { device in
            let status = board.status(of: device.name)
            let heard = device.listening == nil ? board.lastSighting(of: device.name)?.time : status?.since
            return LastSeenTracker.Look(device: device.name, isHere: status?.state == .ready, heard: heard)
        }
        let isListening = board.adapters.contains(where: \.isPowered)
        let silences = enrolled.withLock { enrolled in
            enrolled.silences.note(looks, isListening: isListening, now: .now)
            return enrolled.silences
        }
        let failed = await judgeNewcomers(silences)
        let rules = Dictionary(next.enrol.map { ($0.identity, $0) }) { first, _ in first }
        next.devices.removeAll { device in
            guard !failed.contains(device.name.value) else { return true }
            guard let memory = device.rule.flatMap({ rules[$0] })?.forgetAfter.duration else { return false }
            return silences[device.name.value] >= memory
        }
        let names = Set(next.devices.map(\.name.value))
        let hasWaiting = enrolled.withLock { enrolled in
            defer { enrolled.hasWaiting = false }
            return enrolled.hasWaiting || enrolled.newcomers.hasPauses
        }
        guard names.count < configuration.devices.count else {
            await remember()
            return hasWaiting ? seek() : ()
        }
        await take(next, registry, herdDevices.filter { names.contains($0.name) })
        // Who comes back is welcome.
        seek()
    }

    /// Names the newcomers that have failed, and has history forget those of the last time.
    private func judgeNewcomers(_ silences: LastSeenTracker) async -> Set<String> {
        let board = gateway.herd.board
        let looks = herdDevices.map { device in
            let status = board.status(of: device.name)
            return EnrolmentCandidates.Look(
                device: device.name,
                wasReady: status?.state == .ready || !board.profiles(of: device.name).isEmpty,
                hadItsChance: status.map { $0.attempt > 0 || $0.state == .failed } ?? false
                    || silences[device.name] >= EnrolmentCandidates.trial
            )
        }
        let (outcome, strangers) = enrolled.withLock { enrolled in
            let outcome = enrolled.newcomers.judge(looks, now: .now)
            defer { enrolled.strangers = outcome.failed }
            return (outcome, enrolled.strangers)
        }
        for name in outcome.proven { log(.notice, "a rule has made a device", [.init("device", name)]) }
        if !outcome.failed.isEmpty {
            let count = outcome.failed.count
            log(.info, "devices of rules that were never ready are forgotten", [.init("count", count)])
        }
        do throws(StoreFault) {
            try await history.removeTraces(of: strangers)
        } catch {
            log(.warning, "forgotten devices stay in history", [.init("history.error", error.detail)])
        }
        return Set(outcome.failed)
    }
}

extension Configuration {
    /// Nobody has the device's name or address.
    fileprivate func hasRoom(for device: DeviceSettings) -> Bool {
        !devices.contains { $0.name.value == device.name.value || $0.address.value == device.address.value }
    }

    fileprivate func enrolledDevices(_ enrolled: EnrolledDevices) -> [EnrolledDevice] {
        devices.compactMap { device in
            var record = EnrolledDevice(device, silence: enrolled.silences[device.name.value])
            record?.isProven = !enrolled.newcomers.contains(device.name.value)
            return record
        }
        .sorted { $0.device < $1.device }
    }
}
