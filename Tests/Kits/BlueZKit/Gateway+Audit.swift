import Foundation
public import TestKit

extension Gateway {
    /// The events at the peripherals until now.
    public func truth() async throws -> Truth {
        try await stack.truth()
    }

    /// The audit of everything sent, stored and received so far.
    public func audit(of subscriber: Subscriber) async throws -> DeliveryAudit {
        let names = Dictionary(uniqueKeysWithValues: peripherals.devices.map { ($0.address, $0.name) })
        return DeliveryAudit(
            // Audits are repeated: they need not request the newest events.
            sent: try Truth(path: stack.truthPath).sent(by: names),
            stored: try await stored(),
            rejected: try await rejected(),
            received: Self.readings(subscriber.messages)
        )
    }

    /// Repeats the audit until it is as expected, and returns the last one.
    ///
    /// Gives up when 50 audits in a row, 200 ms apart, find no new reading. Audits are counted instead of seconds so
    /// that a stalled machine does not fail the test.
    public func audit(
        of subscriber: Subscriber,
        until isExpected: (DeliveryAudit) -> Bool
    ) async throws -> DeliveryAudit {
        var audit = try await audit(of: subscriber)
        var idlePolls = 0
        while !isExpected(audit), idlePolls < 50 {
            try await Task.sleep(for: .milliseconds(200))
            let before = audit.entryCount
            audit = try await self.audit(of: subscriber)
            idlePolls = audit.entryCount == before ? idlePolls + 1 : 0
        }
        return audit
    }

    /// The notified and indicated readings of `history`, in the order of `seq`.
    public func stored() async throws -> [DeliveryAudit.Stored] {
        let rows = try await database.rows(
            """
            SELECT seq, ts, device, stream, metric, value FROM history
            WHERE source IN ('notify', 'indicate') ORDER BY seq
            """
        )
        var readings: [DeliveryAudit.Stored] = []
        for row in rows {
            guard row.count == 6, let seq = Int(row[0]), let time = Int(row[1]) else { continue }
            if readings.last?.seq != seq {
                readings.append(DeliveryAudit.Stored(seq: seq, time: time, device: row[2], stream: row[3]))
            }
            readings[readings.count - 1].values.add(Double(row[5]), to: row[4])
        }
        return readings
    }

    private func rejected() async throws -> [Truth.Source: Int] {
        let rows = try await database.rows("SELECT device, characteristic, count(*) FROM rejects GROUP BY 1, 2")
        return Dictionary(uniqueKeysWithValues: rows.map { (Truth.Source($0[0], $0[1]), Int($0[2]) ?? 0) })
    }

    private static func readings(_ messages: [ReceivedMessage]) -> [DeliveryAudit.Received] {
        messages.compactMap { message in
            let object = try? JSONSerialization.jsonObject(with: Data(message.payload.utf8)) as? [String: Any]
            guard !message.isRetained, let object, let seq = object["seq"] as? Int,
                let source = object["source"] as? String, ["notify", "indicate"].contains(source)
            else { return nil }
            return DeliveryAudit.Received(
                seq: seq,
                topic: message.topic,
                payload: message.payload,
                values: DecodedValues(message: object),
                time: object["ts"] as? String ?? "",
                isStored: object["stored"] as? Bool != false
            )
        }
    }
}
