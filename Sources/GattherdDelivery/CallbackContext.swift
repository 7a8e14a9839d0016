import CMosquitto
import Glibc

/// What libmosquitto's callbacks reach: a list that is emptied when the call that led to them has returned.
///
/// The library calls back only from within our calls, on the thread that makes them.
final class CallbackContext {
    private var events: [BrokerEvent] = []
    /// How many messages there were.
    private(set) var messageCount = 0
    /// How many of them the library answers by itself.
    private(set) var answeredCount = 0

    func takeEvents() -> [BrokerEvent] {
        guard !events.isEmpty else { return [] }
        defer { events.removeAll(keepingCapacity: true) }
        return events
    }

    /// The `_v5` callbacks are called for MQTT 3.1.1 as well, without properties.
    static func install(on raw: OpaquePointer) {
        unsafe mosquitto_connect_v5_callback_set(raw) { _, context, reason, _, properties in
            let limits = unsafe BrokerLimits(properties)
            unsafe CallbackContext.at(context)?.events.append(.connected(reason: reason, limits))
        }
        unsafe mosquitto_disconnect_v5_callback_set(raw) { _, context, reason, _ in
            unsafe CallbackContext.at(context)?.events.append(.disconnected(reason: reason))
        }
        unsafe mosquitto_publish_v5_callback_set(raw) { _, context, mid, reason, _ in
            unsafe CallbackContext.at(context)?.events.append(.acknowledged(mid: mid, reason: reason))
        }
        unsafe mosquitto_subscribe_v5_callback_set(raw) { _, context, mid, count, granted, _ in
            let answers = unsafe UnsafeBufferPointer(start: granted, count: Int(count))
            let isGranted = unsafe answers.allSatisfy { $0 < 0x80 }
            unsafe CallbackContext.at(context)?.events.append(.subscribed(mid: mid, isGranted: isGranted))
        }
        unsafe mosquitto_message_v5_callback_set(raw) { _, context, message, properties in
            unsafe CallbackContext.at(context)?.messageCount += 1
            let isAnswered = unsafe message.map { unsafe $0.pointee.qos > 0 } ?? false
            if isAnswered { unsafe CallbackContext.at(context)?.answeredCount += 1 }
            guard let message = unsafe message.flatMap({ unsafe BrokerMessage($0.pointee, properties) }) else { return }
            unsafe CallbackContext.at(context)?.events.append(.message(message))
        }
    }

    /// Borrows the context that ``MosquittoHandle`` retains for the life of the library's object.
    private static func at(_ pointer: UnsafeMutableRawPointer?) -> CallbackContext? {
        unsafe pointer.map { unsafe Unmanaged.fromOpaque($0).takeUnretainedValue() }
    }
}

extension BrokerLimits {
    fileprivate init(_ properties: OpaquePointer?) {
        var (word, octet): (UInt16, UInt8) = (0, 0)
        if unsafe mosquitto_property_read_int16(properties, MQTT_PROP_RECEIVE_MAXIMUM.id, &word, false) != nil {
            receiveMaximum = max(1, Int(word))
        }
        if unsafe mosquitto_property_read_int16(properties, MQTT_PROP_SERVER_KEEP_ALIVE.id, &word, false) != nil {
            keepalive = word
        }
        if unsafe mosquitto_property_read_int16(properties, MQTT_PROP_TOPIC_ALIAS_MAXIMUM.id, &word, false) != nil {
            topicAliases = Int(word)
        }
        if unsafe mosquitto_property_read_byte(properties, MQTT_PROP_RETAIN_AVAILABLE.id, &octet, false) != nil {
            canRetain = octet != 0
        }
        if unsafe mosquitto_property_read_byte(properties, MQTT_PROP_MAXIMUM_QOS.id, &octet, false) != nil {
            takesQoS1 = octet > 0
        }
        var length: UInt32 = 0
        if unsafe mosquitto_property_read_int32(properties, MQTT_PROP_MAXIMUM_PACKET_SIZE.id, &length, false) != nil {
            maximumPacket = Int(length)
        }
    }
}

extension BrokerMessage {
    fileprivate init?(_ message: mosquitto_message, _ properties: OpaquePointer?) {
        guard let topic = unsafe message.topic else { return nil }
        unsafe self.topic = String(cString: topic)
        length = unsafe Int(message.payloadlen)
        let shown = min(length, Self.maximum + 1)
        payload = unsafe Array(
            UnsafeRawBufferPointer(start: message.payload, count: message.payload == nil ? 0 : shown)
        )
        isRetained = unsafe message.retain
        responseTopic = unsafe Self.responseTopic(properties)
        correlation = unsafe Self.correlation(properties)
    }

    private static func responseTopic(_ properties: OpaquePointer?) -> String? {
        var text: UnsafeMutablePointer<CChar>?
        guard unsafe mosquitto_property_read_string(properties, MQTT_PROP_RESPONSE_TOPIC.id, &text, false) != nil,
            let text = unsafe text
        else { return nil }
        defer { unsafe free(text) }
        return unsafe String(cString: text)
    }

    private static func correlation(_ properties: OpaquePointer?) -> [UInt8]? {
        var (octets, count): (UnsafeMutableRawPointer?, UInt16) = (nil, 0)
        let identifier = MQTT_PROP_CORRELATION_DATA.id
        guard unsafe mosquitto_property_read_binary(properties, identifier, &octets, &count, false) != nil else {
            return nil
        }
        defer { unsafe free(octets) }
        return unsafe Array(UnsafeRawBufferPointer(start: octets, count: octets == nil ? 0 : Int(count)))
    }
}
