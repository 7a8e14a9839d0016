import GattherdLog
import GattherdMachines
import GattherdModel

/// Readings on their way from the log to the broker.
extension MQTTDelivery {
    func followHead() async {
        for await seq in readings.heads() { step(.headMoved(seq)) }
    }

    func load() async {
        do throws(StoreFault) {
            step(.cursorLoaded(try await readings.acknowledged()))
        } catch {
            logFailed(.load, error)
        }
    }

    func fetch(after seq: Int64, limit: Int) async {
        do throws(StoreFault) {
            step(.fetched(try await readings.readings(after: seq, limit: limit)))
        } catch {
            logFailed(.fetch, error)
        }
    }

    func save(_ seq: Int64) async {
        do throws(StoreFault) {
            try await readings.acknowledge(through: seq)
            step(.saved(seq))
        } catch {
            logFailed(.save, error)
        }
    }

    private func logFailed(_ operation: DeliveryMachine.LogOperation, _ fault: StoreFault) {
        if narrator.mayTell(of: .log, at: now) {
            log(
                .warning,
                "delivery cannot use the log",
                [.init("log.operation", operation.rawValue), .init("log.error", fault.detail)]
            )
        }
        step(.logFailed(operation))
    }

    /// Hands a batch over; the kernel gathers it into few segments.
    func publish(_ batch: [LoggedReading], again: Int, session: Int) {
        guard let client = link?.client, link?.session == session else { return }
        counters.published.add(UInt64(batch.count))
        counters.republished.add(UInt64(again))
        let isCorked = batch.count > 1
        if isCorked { client.handle.setCorked(true) }
        let failures = batch.compactMap { publish($0, by: client) }
        if isCorked { client.handle.setCorked(false) }
        link?.lastSent = now
        if !failures.isEmpty { step(.settled(session: session, failures)) }
    }

    /// Gives an outcome only if the library did not take the reading.
    private func publish(_ reading: LoggedReading, by client: BrokerClient) -> PublishOutcome? {
        let isRetained = settings.retainsReadings && link?.canRetain == true
        let topic = topics.reading(reading.device, reading.stream)
        do throws(MosquittoError) {
            let mid = try client.handle.publish(reading.payload, to: topic, retained: isRetained)
            link?.readings[mid] = reading.seq
            return nil
        } catch {
            return PublishOutcome(seq: reading.seq, BrokerReason.verdict(of: error))
        }
    }
}
