/// The reports of admissions and of owners, so that each change has one effect.
struct LeaseReports: Sendable {
    typealias Effect = LeaseMachine.Effect

    /// The statuses that were reported last, by device.
    private var statuses: [String: LeaseStatus] = [:]
    /// The details of the last withdrawals, by device.
    private var withdrawals: [String: String] = [:]

    /// The reason why the device may not be connected here; `nil` if it may.
    func withdrawal(of device: String) -> String? { withdrawals[device] }

    /// Removes the reports of all other devices.
    mutating func keep(where isKept: (String) -> Bool) {
        statuses = statuses.filter { isKept($0.key) }
        withdrawals = withdrawals.filter { isKept($0.key) }
    }

    /// Returns the effect of an admission or a withdrawal.
    ///
    /// - Parameters:
    ///   - device: The device.
    ///   - isAdmitted: True if it may be connected here.
    ///   - wasAdmitted: True if it might be connected here until now.
    ///   - detail: The reason if it may not be connected here.
    /// - Returns: No effect if nothing has changed.
    mutating func admission(
        of device: String,
        _ isAdmitted: Bool,
        before wasAdmitted: Bool,
        detail: String
    ) -> [Effect] {
        let before = withdrawals[device]
        withdrawals[device] = isAdmitted ? nil : detail
        guard !isAdmitted else { return wasAdmitted ? [] : [.admit(device: device)] }
        return wasAdmitted || before != detail ? [.withdraw(device: device, detail: detail)] : []
    }

    /// Returns the effect of a change of owner.
    mutating func change(of device: String, to status: LeaseStatus) -> [Effect] {
        let before = statuses[device]
        guard before != nil || status.owner != nil else { return [] }
        guard before?.owner != status.owner || before?.epoch != status.epoch else { return [] }
        statuses[device] = status
        return [.changed(device: device, status)]
    }
}
