import GattherdGATT
import GattherdModel

/// The advertisements in HCI events: Core Specification Vol 4, Part E, "LE Advertising Report event" and "LE Extended
/// Advertising Report event".
struct AdvertisingReports {
    /// The maximum number of bytes of an advertisement in several reports.
    private static let longest = 1650
    /// The maximum number of unfinished advertisements.
    private static let mostPending = 64

    private static let metaEvent: UInt8 = 0x3E

    /// The most senders whose advertisement has lost its first part.
    private static let mostHeadless = 1024

    /// The first reports of advertisements that are not complete, with their age.
    private var pending: [BluetoothAddress: (octets: [UInt8], number: Int)] = [:]
    /// The senders of which the first part of the current advertisement was dropped.
    private var headless: Set<BluetoothAddress> = []
    private var number = 0

    /// Reads the advertisements of an event; none of other events.
    ///
    /// - Parameters:
    ///   - event: The event from its code on.
    ///   - time: The time of its receipt.
    /// - Returns: The advertisements, in order.
    /// - Throws: ``PayloadError`` if it is truncated.
    mutating func advertisements(
        in event: [UInt8],
        at time: Timestamp?
    ) throws(PayloadError) -> [CapturedAdvertisement] {
        var cursor = PayloadCursor(event.span)
        guard try cursor.u8() == Self.metaEvent else { return [] }
        let length = Int(try cursor.u8())
        guard length <= cursor.left else {
            throw .truncated(offset: cursor.offset, needed: length, left: cursor.left)
        }
        let kind = try cursor.u8()
        guard kind == 0x02 || kind == 0x0D else { return [] }
        var found: [CapturedAdvertisement] = []
        for _ in 0..<Int(try cursor.u8()) {
            let report = kind == 0x02 ? try Self.report(&cursor, time) : try extendedReport(&cursor, time)
            if let report { found.append(report) }
        }
        return found
    }

    private static func report(
        _ cursor: inout PayloadCursor,
        _ time: Timestamp?
    ) throws(PayloadError) -> CapturedAdvertisement {
        try cursor.skip(2)
        let address = BluetoothAddress(value: try cursor.unsigned(octets: 6))
        let octets = try cursor.octets(Int(try cursor.u8()))
        return CapturedAdvertisement(time: time, address: address, rssi: strength(try cursor.u8()), octets: octets)
    }

    /// Returns an extended report; `nil` as long as more of its data follows.
    private mutating func extendedReport(
        _ cursor: inout PayloadCursor,
        _ time: Timestamp?
    ) throws(PayloadError) -> CapturedAdvertisement? {
        let type = try cursor.u16()
        try cursor.skip(1)
        let address = BluetoothAddress(value: try cursor.unsigned(octets: 6))
        try cursor.skip(4)
        let rssi = Self.strength(try cursor.u8())
        try cursor.skip(9)
        let octets = try cursor.octets(Int(try cursor.u8()))
        guard let whole = complete(octets, of: address, isLast: type >> 5 & 0b11 != 0b01) else { return nil }
        return CapturedAdvertisement(time: time, address: address, rssi: rssi, octets: whole)
    }

    /// Joins the data of several reports; `nil` until the last one, and if a part of them was dropped.
    mutating func complete(_ octets: [UInt8], of address: BluetoothAddress, isLast: Bool) -> [UInt8]? {
        if headless.contains(address) {
            if isLast { headless.remove(address) }
            return nil
        }
        let all = (pending.removeValue(forKey: address)?.octets ?? []) + octets
        if isLast { return all }
        guard all.count <= Self.longest else {
            drop(address)
            return nil
        }
        // Senders that never finish make room for others.
        if pending.count >= Self.mostPending, let oldest = pending.min(by: { $0.value.number < $1.value.number }) {
            pending[oldest.key] = nil
            drop(oldest.key)
        }
        number += 1
        pending[address] = (all, number)
        return nil
    }

    private mutating func drop(_ address: BluetoothAddress) {
        if headless.count >= Self.mostHeadless { headless.removeAll() }
        headless.insert(address)
    }

    /// The strength that the controller reports; 127 means that it reports none.
    private static func strength(_ octet: UInt8) -> Int? { octet == 127 ? nil : Int(Int8(bitPattern: octet)) }
}
