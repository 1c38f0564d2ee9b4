// Runs KServe's own code over manifests, with fake clients instead of a cluster: the rules of its webhook for defaults, its
// reconciler in RawDeployment mode, and its webhook for pods. Arguments: KServe's ConfigMap, then files with ServingRuntimes
// and InferenceServices. What it writes is kept as reconciled.json, so that tests need no Go:
//
//	go run . "$(go list -m -f '{{.Dir}}' github.com/kserve/kserve)/config/configmap/inferenceservice.yaml" \
//	  ../../../deploy/kserve/*.yaml *-service*.yaml >reconciled.json
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"github.com/kserve/kserve/pkg/apis/serving/v1alpha1"
	"github.com/kserve/kserve/pkg/apis/serving/v1beta1"
	"github.com/kserve/kserve/pkg/constants"
	"github.com/kserve/kserve/pkg/controller/v1beta1/inferenceservice"
	"github.com/kserve/kserve/pkg/webhook/admission/pod"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kyaml "k8s.io/apimachinery/pkg/util/yaml"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"
)

const namespace = "models"

type output struct {
	// Version of the module whose code this is.
	KServe      string              `json:"kserve"`
	Deployments []appsv1.Deployment `json:"deployments"`
	Services    []corev1.Service    `json:"services"`
	// What the webhook for pods makes of each Deployment's template.
	Pods []corev1.Pod `json:"pods"`
}

func main() {
	if err := run(context.Background(), os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, configFile string, files []string) error {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientscheme.AddToScheme, v1alpha1.AddToScheme, v1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	text, err := os.ReadFile(configFile)
	if err != nil {
		return err
	}
	config := &corev1.ConfigMap{}
	if err := yaml.Unmarshal(text, config); err != nil {
		return err
	}
	objects, services, err := read(files, config)
	if err != nil {
		return err
	}
	clientset := kubefake.NewSimpleClientset(config)
	made := fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(objects, config)...).
		WithStatusSubresource(&v1beta1.InferenceService{}).Build()
	reconciler := &inferenceservice.InferenceServiceReconciler{
		Client: made, Clientset: clientset, Scheme: scheme, Log: ctrl.Log, Recorder: record.NewFakeRecorder(100),
	}
	for _, service := range services {
		key := client.ObjectKeyFromObject(service)
		if _, err := reconciler.Reconcile(ctx, ctrl.Request{NamespacedName: key}); err != nil {
			return fmt.Errorf("%s: %w", service.Name, err)
		}
	}
	return write(ctx, made, &pod.Mutator{Client: made, Clientset: clientset, Decoder: admission.NewDecoder(scheme)})
}

// Reads manifests; InferenceServices get the defaults that KServe's webhook gives them.
func read(files []string, config *corev1.ConfigMap) (all []client.Object, services []*v1beta1.InferenceService, err error) {
	servicesConfig, err := v1beta1.NewInferenceServicesConfig(config)
	if err != nil {
		return nil, nil, err
	}
	deploy, err := v1beta1.NewDeployConfig(config)
	if err != nil {
		return nil, nil, err
	}
	security, err := v1beta1.NewSecurityConfig(config)
	if err != nil {
		return nil, nil, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, nil, err
		}
		reader := kyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
		for {
			document, err := reader.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, nil, err
			}
			object, err := objectOf(document)
			if err != nil {
				return nil, nil, err
			}
			if service, ok := object.(*v1beta1.InferenceService); ok {
				service.Annotations = map[string]string{constants.DeploymentMode: string(constants.RawDeployment)}
				service.DefaultInferenceService(servicesConfig, deploy, security, nil)
				services = append(services, service)
			}
			all = append(all, object)
		}
	}
	return all, services, nil
}

func objectOf(document []byte) (client.Object, error) {
	var head struct {
		Kind string `json:"kind"`
	}
	if err := yaml.Unmarshal(document, &head); err != nil {
		return nil, err
	}
	var object client.Object
	switch head.Kind {
	case "ClusterServingRuntime":
		object = &v1alpha1.ClusterServingRuntime{}
	case "ServingRuntime":
		object = &v1alpha1.ServingRuntime{}
		object.SetNamespace(namespace)
	case "InferenceService":
		object = &v1beta1.InferenceService{}
	default:
		return nil, fmt.Errorf("kind %s is not supported", head.Kind)
	}
	if err := yaml.UnmarshalStrict(document, object); err != nil {
		return nil, err
	}
	if head.Kind != "ClusterServingRuntime" {
		object.SetNamespace(namespace)
	}
	return object, nil
}

func write(ctx context.Context, made client.Client, mutator *pod.Mutator) error {
	deployments, services := &appsv1.DeploymentList{}, &corev1.ServiceList{}
	if err := made.List(ctx, deployments); err != nil {
		return err
	}
	if err := made.List(ctx, services); err != nil {
		return err
	}
	done := output{KServe: version(), Deployments: deployments.Items, Services: services.Items}
	for _, deployment := range deployments.Items {
		changed, err := podOf(ctx, deployment, mutator)
		if err != nil {
			return err
		}
		done.Pods = append(done.Pods, *changed)
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetIndent("", "  ")
	return encoder.Encode(done)
}

func version() string {
	info, _ := debug.ReadBuildInfo()
	for _, module := range info.Deps {
		if module.Path == "github.com/kserve/kserve" {
			return module.Version
		}
	}
	return ""
}

// The pod of a Deployment's template, as the webhook leaves it.
func podOf(ctx context.Context, deployment appsv1.Deployment, mutator *pod.Mutator) (*corev1.Pod, error) {
	template := deployment.Spec.Template
	raw, err := json.Marshal(corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec})
	if err != nil {
		return nil, err
	}
	response := mutator.Handle(ctx, admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Namespace: namespace, Object: runtime.RawExtension{Raw: raw},
	}})
	if !response.Allowed {
		return nil, fmt.Errorf("%s: %s", deployment.Name, response.Result.Message)
	}
	operations, err := json.Marshal(response.Patches)
	if err != nil {
		return nil, err
	}
	patch, err := jsonpatch.DecodePatch(operations)
	if err != nil {
		return nil, err
	}
	changed, err := patch.Apply(raw)
	if err != nil {
		return nil, err
	}
	made := &corev1.Pod{}
	return made, json.Unmarshal(changed, made)
}
