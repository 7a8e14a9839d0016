import GattherdBluetooth
import GattherdConfig
import GattherdDaemon
import GattherdGATT
import GattherdHistory
import GattherdLog
import GattherdModel
import GattherdProfiles
import GattherdSync

/// The devices that rules have enrolled: last sightings, candidates, stored records.
struct EnrolledDevices: Sendable {
    var lastSeen: LastSeenTracker
    var candidates: EnrolmentCandidates
    /// True if peripherals had to wait and are to be offered again.
    var hasWaiting = false
    /// Devices that were removed without having been ready; the next check removes them from history.
    var failed: [String] = []
    /// The records in history; `nil` until history could be read.
    ///
    /// Until then no device may count as removed.
    var stored: [EnrolledDevice]?

    init(_ records: [EnrolledDevice]?, now: SuspendingClock.Instant) {
        stored = records
        lastSeen = LastSeenTracker(records ?? [], now: now)
        candidates = EnrolmentCandidates(records ?? [], now: now)
    }

    var isRecallDue: Bool { stored == nil }

    /// Adds the records of earlier runs, which could not be read at the start.
    ///
    /// The trials of this run go on, except those of devices that an earlier run has proven.
    ///
    /// - Parameters:
    ///   - records: The records.
    ///   - known: The devices of this run.
    ///   - now: The time.
    mutating func recall(_ records: [EnrolledDevice], known: Set<String>, now: SuspendingClock.Instant) {
        stored = records
        let others = records.filter { !known.contains($0.device) }
        lastSeen.add(others)
        candidates.add(others, now: now)
        candidates.removeProven(by: records)
        // The device is back, so its traces stay.
        failed.removeAll { name in others.contains { $0.device == name && $0.isProven } }
    }

    /// True if the next check must not wait for long.
    var isCheckUrgent: Bool { isRecallDue || hasWaiting || !candidates.isIdle }

    /// True if the device was never ready and its trial runs, or has just failed.
    func isCandidate(_ device: String) -> Bool { candidates.contains(device) || failed.contains(device) }

    /// Checks the candidates.
    ///
    /// - Returns: The outcome, and the devices that failed in the check before: they are removed by now.
    mutating func check(
        _ observations: [EnrolmentCandidates.Observation],
        now: SuspendingClock.Instant
    ) -> (outcome: EnrolmentCandidates.Outcome, removed: [String]) {
        let outcome = candidates.check(observations, now: now)
        defer { failed = outcome.failed }
        return (outcome, failed)
    }
}

/// Makes devices of peripherals that a rule wants, and removes devices that were not seen for long.
struct EnrolmentService: Sendable {
    private let running: RunningConfiguration
    private let updater: GatewayUpdater
    private let supervisor: Supervisor
    private let history: ReadingHistory
    private let changes: PendingChanges
    private let enrolled: Locked<EnrolledDevices>
    private let schedule = CheckSchedule()
    /// The leases of all devices; `nil` without leases.
    private let leases: LeaseBoard?
    private let log: Log

    init(
        _ running: RunningConfiguration,
        _ updater: GatewayUpdater,
        _ supervisor: Supervisor,
        _ history: ReadingHistory,
        _ changes: PendingChanges,
        _ enrolled: Locked<EnrolledDevices>,
        _ leases: LeaseBoard?,
        log: Log
    ) {
        (self.running, self.updater, self.supervisor, self.history) = (running, updater, supervisor, history)
        (self.changes, self.enrolled, self.leases, self.log) = (changes, enrolled, leases, log)
    }

    /// Offers unknown peripherals to the rules; called again after each reload.
    func search() {
        let rules = EnrolmentRules(running.configuration.enrol, running.registry)
        let changes = changes
        guard !rules.isEmpty else { return supervisor.offerPeripherals(to: nil) }
        supervisor.offerPeripherals { rules.device(for: $0) != nil && changes.offer($0) }
    }

    /// Enrols peripherals and, if a check is due, removes devices without a sighting for `forget_after`.
    func update(_ peripherals: [PeripheralStatus], isCheckDue: Bool) async {
        if enrolled.withLock(\.isRecallDue) { await recall() }
        await enrol(peripherals)
        if isCheckDue { await check() }
        updateSchedule()
    }

    /// Requests checks until cancelled.
    func requestChecks() async {
        updateSchedule()
        await schedule.run { [changes] in changes.check() }
    }

    private func updateSchedule() {
        let limits = running.configuration.enrol.compactMap(\.forgetAfter.duration)
        schedule.set(CheckSchedule.interval(forgetAfter: limits, isUrgent: enrolled.withLock(\.isCheckUrgent)))
    }

    /// Stores the enrolled devices, so that a restart knows them.
    func save() async {
        let configuration = running.configuration
        let records = enrolled.withLock { enrolled in
            let records = configuration.enrolledDevices(enrolled)
            return enrolled.isRecallDue || enrolled.stored == records ? nil : records
        }
        guard let records else { return }
        do throws(StoreFault) {
            try await history.setEnrolled(records)
            enrolled.withLock { $0.stored = records }
        } catch {
            log(.warning, "enrolled devices could not be stored", [.init("history.error", error.detail)])
        }
    }

    private func apply(_ next: Configuration, _ devices: [SupervisedDevice]) async {
        await updater.apply(next, running.registry, devices)
        await save()
    }

    /// Adds the devices of earlier runs, if history could not be read at the start.
    private func recall() async {
        guard let records = try? await history.enrolledDevices() else { return }
        let before = running.configuration
        let known = Set(before.devices.map(\.name.value))
        enrolled.withLock { $0.recall(records, known: known, now: .now) }
        let next = before.recalling(records)
        let registry = running.registry
        let added = next.devices.dropFirst(before.devices.count).map { SupervisedDevice($0, registry) }
        await apply(next, running.devices + added)
    }
}

// MARK: - Addition

extension EnrolmentService {
    /// Enrols the peripherals that a rule still matches, as far as there is room.
    private func enrol(_ peripherals: [PeripheralStatus]) async {
        let rules = EnrolmentRules(running.configuration.enrol, running.registry)
        var next = running.configuration
        var records: [DeviceRecord] = []
        var waiting = 0
        for peripheral in peripherals {
            guard let device = rules.device(for: peripheral), next.hasRoom(for: device) else { continue }
            let isFull = next.devices.count(where: { $0.rule != nil }) >= EnrolmentRules.limit
            let leaver = isFull ? longestUnseen(in: next) : nil
            let admission = isFull && leaver == nil ? .full : admit(device)
            if admission == .full { waiting += 1 }
            guard admission == .admitted else { continue }
            if let leaver { next.devices.removeAll { $0.name.value == leaver } }
            let (name, address) = (device.name.value, device.address.value.description)
            next.devices.append(device)
            enrolled.withLock { $0.lastSeen.reset(name) }
            records.append(DeviceRecord(device: name, address: address, name: peripheral.name))
        }
        if waiting > 0 { logLimit(waiting) }
        guard !records.isEmpty else { return }
        for record in records { await store(record) }
        let stays = Set(next.devices.map(\.name.value))
        let registry = running.registry
        let new = next.devices.suffix(records.count).map { SupervisedDevice($0, registry) }
        await apply(next, running.devices.filter { stays.contains($0.name) } + new)
    }

    private func admit(_ device: DeviceSettings) -> EnrolmentCandidates.Admission {
        enrolled.withLock { enrolled in
            enrolled.candidates.admit(
                device.name.value,
                at: device.address.value.description,
                by: device.rule ?? "",
                now: .now
            )
        }
    }

    /// The device that makes room for another one; `nil` if all were seen lately.
    private func longestUnseen(in configuration: Configuration) -> String? {
        let lastSeen = enrolled.withLock(\.lastSeen)
        let names = configuration.devices.filter { $0.rule != nil }.map(\.name.value)
        return names.max { lastSeen[$0] < lastSeen[$1] }.flatMap {
            lastSeen[$0] >= EnrolmentRules.replaceableAfter ? $0 : nil
        }
    }

    private func logLimit(_ count: Int) {
        enrolled.withLock { $0.hasWaiting = true }
        let advice = """
            rules make at most \(EnrolmentRules.limit) devices, and each rule at most \(EnrolmentCandidates.places) \
            that were never ready; make the match of a rule stricter
            """
        log(.warning, "enrolment is at its limit; peripherals wait", [.init("count", count), .init("advice", advice)])
    }

    private func store(_ record: DeviceRecord) async {
        do throws(StoreFault) {
            try await history.record(record, seenAt: SystemClock.now)
        } catch {
            log(.warning, "the device could not be stored in history", [.init("history.error", error.detail)])
        }
    }
}

// MARK: - Removal

extension EnrolmentService {
    /// Removes devices that were not seen for the `forget_after` of their rule, and candidates that failed.
    private func check() async {
        var next = running.configuration
        let isIdle = enrolled.withLock { $0.failed.isEmpty && !$0.hasWaiting && $0.candidates.pauseCount == 0 }
        guard !isIdle || next.devices.contains(where: { $0.rule != nil }) else { return }
        let lastSeen = updateLastSeen()
        let failed = await checkCandidates(lastSeen)
        let rules = Dictionary(next.enrol.map { ($0.identity, $0) }) { first, _ in first }
        next.devices.removeAll { device in
            guard !failed.contains(device.name.value) else { return true }
            guard let limit = device.rule.flatMap({ rules[$0] })?.forgetAfter.duration else { return false }
            return lastSeen[device.name.value] >= limit
        }
        let names = Set(next.devices.map(\.name.value))
        let hasWaiting = enrolled.withLock { enrolled in
            defer { enrolled.hasWaiting = false }
            return enrolled.hasWaiting || enrolled.candidates.pauseCount > 0
        }
        guard names.count < running.configuration.devices.count else {
            await save()
            return hasWaiting ? search() : ()
        }
        await apply(next, running.devices.filter { names.contains($0.name) })
        // A removed device may return.
        search()
    }

    private func isElsewhere(_ device: String) -> Bool { leases?.isOwnedElsewhere(device) ?? false }

    private func updateLastSeen() -> LastSeenTracker {
        let live = supervisor.status
        let observations = running.devices.map { device in
            let link = live.link(of: device.name)
            let heard = device.listening == nil ? live.lastSighting(of: device.name)?.time : link?.since
            // A peripheral that is linked to another gateway does not advertise.
            let isPresent = link?.state == .ready || isElsewhere(device.name)
            return LastSeenTracker.Observation(device: device.name, isReady: isPresent, heard: heard)
        }
        let isListening = live.adapters.contains(where: \.isPowered)
        return enrolled.withLock { enrolled in
            enrolled.lastSeen.record(observations, isListening: isListening, now: .now)
            return enrolled.lastSeen
        }
    }

    /// Returns the candidates that have failed, and removes those of the last check from history.
    private func checkCandidates(_ lastSeen: LastSeenTracker) async -> Set<String> {
        let live = supervisor.status
        let observations = running.devices.map { device in
            let link = live.link(of: device.name)
            return EnrolmentCandidates.Observation(
                device: device.name,
                wasReady: link?.state == .ready || !live.profiles(of: device.name).isEmpty,
                wasTried: link.map { $0.attempt > 0 || $0.state == .failed } ?? false
                    || lastSeen[device.name] >= EnrolmentCandidates.trial,
                isElsewhere: isElsewhere(device.name)
            )
        }
        let (outcome, removed) = enrolled.withLock { $0.check(observations, now: .now) }
        for name in outcome.proven { log(.notice, "device enrolled by a rule", [.init("device", name)]) }
        if !outcome.failed.isEmpty {
            let count = LogField("count", outcome.failed.count)
            log(.info, "enrolled devices that never became ready were removed", [count])
        }
        do throws(StoreFault) {
            try await history.removeTraces(of: removed)
        } catch {
            log(.warning, "removed devices could not be deleted from history", [.init("history.error", error.detail)])
        }
        return Set(outcome.failed)
    }
}

extension Configuration {
    /// True if no device has the name or the address of `device`.
    fileprivate func hasRoom(for device: DeviceSettings) -> Bool {
        !devices.contains { $0.name.value == device.name.value || $0.address.value == device.address.value }
    }

    fileprivate func enrolledDevices(_ enrolled: EnrolledDevices) -> [EnrolledDevice] {
        devices.compactMap { device in
            var record = EnrolledDevice(device, silence: enrolled.lastSeen[device.name.value])
            record?.isProven = !enrolled.candidates.contains(device.name.value)
            return record
        }
        .sorted { $0.device < $1.device }
    }
}
