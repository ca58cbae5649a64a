package kinesistest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
)

const (
	streamContentType = "application/vnd.amazon.eventstream"
	initialResponse   = "initial-response"
	shardEvent        = "SubscribeToShardEvent"

	eventMessage     = "event"
	exceptionMessage = "exception"

	messageTypeHeader   = ":message-type"
	eventTypeHeader     = ":event-type"
	exceptionTypeHeader = ":exception-type"
	contentTypeHeader   = ":content-type"
)

// eventWriter frames what a subscription sends. Each frame reaches the client at once.
type eventWriter struct {
	w       http.ResponseWriter
	flusher *http.ResponseController
	encoder *eventstream.Encoder
}

func newEventWriter(w http.ResponseWriter) *eventWriter {
	w.Header().Set("Content-Type", streamContentType)
	return &eventWriter{w: w, flusher: http.NewResponseController(w), encoder: eventstream.NewEncoder()}
}

// frame encodes a message whose payload is in JSON.
func (o *eventWriter) frame(messageType, typeHeader, typeName string, payload []byte) ([]byte, error) {
	message := eventstream.Message{Payload: payload}
	message.Headers.Set(messageTypeHeader, eventstream.StringValue(messageType))
	message.Headers.Set(typeHeader, eventstream.StringValue(typeName))
	message.Headers.Set(contentTypeHeader, eventstream.StringValue(contentType))
	var frame bytes.Buffer
	if err := o.encoder.Encode(&frame, message); err != nil {
		return nil, fmt.Errorf("kinesistest: encode an event: %w", err)
	}
	return frame.Bytes(), nil
}

func (o *eventWriter) event(name string, payload []byte) error {
	frame, err := o.frame(eventMessage, eventTypeHeader, name, payload)
	if err != nil {
		return err
	}
	return o.write(frame)
}

func (o *eventWriter) exception(e *apiError) error {
	payload, err := json.Marshal(struct {
		Message string `json:"message"`
	}{e.Message})
	if err != nil {
		return fmt.Errorf("kinesistest: encode an error: %w", err)
	}
	frame, err := o.frame(exceptionMessage, exceptionTypeHeader, string(e.Code), payload)
	if err != nil {
		return err
	}
	return o.write(frame)
}

func (o *eventWriter) write(frame []byte) error {
	if _, err := o.w.Write(frame); err != nil {
		return fmt.Errorf("kinesistest: send an event: %w", err)
	}
	if err := o.flusher.Flush(); err != nil {
		return fmt.Errorf("kinesistest: send an event: %w", err)
	}
	return nil
}
