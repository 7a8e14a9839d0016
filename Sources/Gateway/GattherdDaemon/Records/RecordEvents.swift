import GattherdGATT
import GattherdMachines
import GattherdModel

extension EventRecorder {
    /// Records a finding about stored records.
    func record(_ finding: RecordDecoder.Finding) {
        let (state, detail): (String, String) =
            switch finding.notice {
            case .gap(let numbers):
                ("gap", "the device no longer has the records \(numbers.lowerBound) to \(numbers.upperBound)")
            case .restarted: ("restarted", "the numbers of the records restarted")
            case .clockSet: ("clock", "the device's clock was set")
            }
        var count: Int64?
        if case .gap(let numbers) = finding.notice { count = numbers.upperBound &- numbers.lowerBound &+ 1 }
        record(
            device: finding.key.device,
            kind: "records",
            [
                "stream": .text(finding.key.stream), "state": .text(state), "records": count.map { .integer($0) },
                "detail": .text(detail),
            ]
        )
    }
}

extension DownloadDescriptor.Clock {
    private static let unknownZone: UInt8 = 0x80
    private static let unknownSaving: UInt8 = 0xFF

    /// Reads the device's clock.
    ///
    /// - Parameters:
    ///   - octets: The value of the clock.
    ///   - gateway: The gateway's clock, which a start is subtracted from.
    /// - Returns: The clock in microseconds; `nil` if it is not set or not readable.
    func reading(of octets: [UInt8], at gateway: Int64) -> Int64? {
        let value: Int64? =
            switch format {
            case .date: date(octets)
            case .count(let width, let unit): count(octets, width, unit)
            }
        return isStart ? value.map { gateway - $0 } : value
    }

    /// Reads Date Time, the first seven octets also of Current Time and of CGM Session Start Time.
    private func date(_ octets: [UInt8]) -> Int64? {
        guard octets.count >= 7 else { return nil }
        let year = Int(octets[0]) | Int(octets[1]) << 8
        let parts = [(year, 4, "-")] + zip(octets[2...6], ["-", "T", ":", ":", "Z"]).map { (Int($0), 2, $1) }
        let text = parts.map { number, width, suffix in
            let digits = "\(number)"
            return String(repeating: "0", count: max(0, width - digits.count)) + digits + suffix
        }
        guard let time = Timestamp(rfc3339: Array(text.joined().utf8)) else { return nil }
        // CGM Session Start Time has a zone, and of some devices a checksum of two octets.
        guard isStart, octets.count == 9 || octets.count == 11 else {
            return time.microseconds + (octets.count >= 10 ? Int64(octets[8]) * 1_000_000 / 256 : 0)
        }
        let zone = octets[7] == Self.unknownZone ? 0 : Int64(Int8(bitPattern: octets[7]))
        let saving = octets[8] == Self.unknownSaving ? 0 : Int64(octets[8])
        return time.microseconds - (zone + saving) * 900_000_000
    }

    private func count(_ octets: [UInt8], _ width: Int, _ unit: Duration) -> Int64? {
        guard (1...7).contains(width), octets.count >= width else { return nil }
        let number = octets.prefix(width).reversed().reduce(Int64(0)) { $0 << 8 | Int64($1) }
        let micros = unit.components.seconds * 1_000_000 + unit.components.attoseconds / 1_000_000_000_000
        let (product, overflow) = number.multipliedReportingOverflow(by: micros)
        return overflow || product > RecordTracker.latest ? nil : product
    }
}
