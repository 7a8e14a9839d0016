extension Timestamp {
    /// Reads what ``rfc3339`` writes, and nothing else: `2026-11-21T03:20:05.123456Z`.
    public init?(rfc3339 text: some Collection<UInt8>) {
        let shape = Array("0000-00-00T00:00:00.000000Z".utf8)
        guard text.count == shape.count else { return nil }
        let digits = UInt8(ascii: "0")...UInt8(ascii: "9")
        var numbers: [Int64] = [0]
        for (octet, expected) in zip(text, shape) {
            if expected == UInt8(ascii: "0") {
                guard digits.contains(octet) else { return nil }
                numbers[numbers.count - 1] = numbers[numbers.count - 1] * 10 + Int64(octet - digits.lowerBound)
            } else {
                guard octet == expected else { return nil }
                numbers.append(0)
            }
        }
        guard (1...12).contains(numbers[1]), (1...31).contains(numbers[2]), numbers[3] < 24, numbers[4] < 60,
            numbers[5] < 61
        else { return nil }
        let day = Self.daysSince1970(year: numbers[0], month: numbers[1], day: numbers[2])
        let second = (day * 24 + numbers[3]) * 3600 + numbers[4] * 60 + numbers[5]
        self.init(microseconds: second * 1_000_000 + numbers[6])
    }

    /// The inverse of ``CivilDate``: years begin on the first of March.
    private static func daysSince1970(year: Int64, month: Int64, day: Int64) -> Int64 {
        let (era, yearOfEra) = floorDivide(month <= 2 ? year - 1 : year, by: 400)
        let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }
}
